//! `supervisor __probe`: actions of the demo's workers that a shell cannot do: forbidden attempts, leaving the session,
//! and a commit without git.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use base::terminal::{complain, print};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProbeTarget {
    /// Read the beginning of a file.
    File(PathBuf),
    /// Read the memory of a process.
    Memory(i32),
    /// Read the initial environment of a process.
    Environment(i32),
}

impl ProbeTarget {
    pub(super) fn path(&self) -> PathBuf {
        match self {
            ProbeTarget::File(path) => path.clone(),
            ProbeTarget::Memory(pid) => format!("/proc/{pid}/mem").into(),
            ProbeTarget::Environment(pid) => format!("/proc/{pid}/environ").into(),
        }
    }
}

impl std::fmt::Display for ProbeTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProbeTarget::File(path) => write!(f, "file:{}", path.display()),
            ProbeTarget::Memory(pid) => write!(f, "memory:{pid}"),
            ProbeTarget::Environment(pid) => write!(f, "environment:{pid}"),
        }
    }
}

impl FromStr for ProbeTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is none of file:PATH, memory:PID and environment:PID");
        let (kind, rest) = text.split_once(':').ok_or_else(refuse)?;
        let pid = || rest.parse::<i32>().map_err(|_| refuse());
        match kind {
            "file" => Ok(ProbeTarget::File(rest.into())),
            "memory" => Ok(ProbeTarget::Memory(pid()?)),
            "environment" => Ok(ProbeTarget::Environment(pid()?)),
            _ => Err(refuse()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProbeAttempt {
    /// Target, in the form of [`ProbeTarget`].
    pub(super) target: String,
    /// Number of bytes read, on success.
    pub(super) read: Option<usize>,
    /// Error of the system, on failure.
    pub(super) errno: Option<i32>,
}

impl ProbeAttempt {
    /// Returns the result in a word: `read`, or the name of the error.
    pub(super) fn word(&self) -> String {
        match self.errno {
            Some(errno) => format!("{:?}", nix::errno::Errno::from_raw(errno)),
            None => "read".to_owned(),
        }
    }
}

/// Attempts of one worker, in the form of its handoff.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Attempts {
    /// Results in the order of the targets.
    pub(super) attempts: Vec<ProbeAttempt>,
}

/// Makes one attempt, as this process's user.
pub(super) fn attempt(target: &ProbeTarget) -> ProbeAttempt {
    let outcome = match target {
        ProbeTarget::File(path) => read_some(path),
        ProbeTarget::Environment(_) => read_some(&target.path()),
        ProbeTarget::Memory(pid) => read_memory(*pid),
    };
    let (read, errno) = match outcome {
        Ok(read) => (Some(read), None),
        Err(error) => (None, Some(error.raw_os_error().unwrap_or(nix::libc::EIO))),
    };
    ProbeAttempt { target: target.to_string(), read, errno }
}

fn read_some(path: &Path) -> io::Result<usize> {
    let mut bytes = [0_u8; 64];
    File::open(path)?.read(&mut bytes)
}

fn read_memory(pid: i32) -> io::Result<usize> {
    // Opened before an address is looked up, because the kernel must refuse this open.
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let start = maps
        .lines()
        .filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with('r')))
        .find_map(|line| u64::from_str_radix(line.split('-').next()?, 16).ok())
        .ok_or(io::ErrorKind::NotFound)?;
    memory.read_at(&mut [0_u8; 64], start)
}

pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let verb = arguments.next().unwrap_or_default();
    let done = match verb.to_str() {
        Some("attempt") => attempts(arguments),
        Some("detach") => Err(detach(arguments)),
        Some("commit") => commit(arguments),
        _ => Err("usage: __probe attempt TARGET… | detach COMMAND… | commit FILE MESSAGE".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(&format!("error: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn attempts(arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let mut attempts = Vec::new();
    for word in arguments {
        let target: ProbeTarget = word.to_str().ok_or("a target is not UTF-8")?.parse()?;
        attempts.push(attempt(&target));
    }
    let text = serde_json::to_string(&Attempts { attempts }).map_err(|e| e.to_string())?;
    print(&format!("{text}\n")).map_err(|e| e.to_string())
}

/// Leaves the session, and executes the command. Returns only on failure.
fn detach(mut arguments: impl Iterator<Item = OsString>) -> String {
    let Some(command) = arguments.next() else { return "detach: no command".to_owned() };
    match nix::unistd::setsid() {
        Ok(_) => format!("detach: {}", Command::new(command).args(arguments).exec()),
        Err(errno) => format!("detach: setsid: {errno}"),
    }
}

fn commit(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let file = PathBuf::from(arguments.next().ok_or("commit: no file")?);
    let message = arguments.next().and_then(|m| m.into_string().ok()).ok_or("commit: no message")?;
    let tree = std::env::current_dir().map_err(|e| format!("commit: {e}"))?;
    let named = |name: &str| std::env::var(name).map_err(|e| format!("commit: {name}: {e}"));
    let author = workspace::Author { name: named("GIT_AUTHOR_NAME")?, email: named("GIT_AUTHOR_EMAIL")? };
    let id = workspace::repository::commit_file(&tree, &file, &message, &author)
        .map_err(|e| base::failure::with_causes(&e))?;
    print(&format!("{id}\n")).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_written() {
        for text in ["file:/a b", "memory:7", "environment:7"] {
            assert_eq!(text.parse::<ProbeTarget>().unwrap().to_string(), text);
        }
        for text in ["", "file", "memory:x", "socket:/a"] {
            assert!(text.parse::<ProbeTarget>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_open_is_read_and_what_is_not_has_its_error() {
        let own = i32::try_from(std::process::id()).unwrap();
        for target in [
            ProbeTarget::File("/proc/self/status".into()),
            ProbeTarget::Memory(own),
            ProbeTarget::Environment(own),
        ] {
            let attempt = attempt(&target);
            assert_eq!((attempt.word().as_str(), attempt.read.is_some()), ("read", true), "{target}");
        }
        let missing = attempt(&ProbeTarget::File("/nowhere/at/all".into()));
        assert_eq!((missing.word().as_str(), missing.read), ("ENOENT", None));
    }
}
