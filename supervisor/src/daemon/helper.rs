//! The helper process: does one piece of work as another user, and is gone.
//!
//! Whatever reads or writes in a tree that a worker owns runs here when the daemon is root: the worker may have planted
//! links, repositories and devices, and as the worker's own user there is nothing to gain from them.
//!
//! `supervisor __helper <pid of the asker>` reads a [`Task`] as JSON from standard input and prints a [`Reply`].

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use serde::{Deserialize, Serialize};
use workspace::{Failure, Job, Outcome};

use super::shortage::{self, is_shortage};

/// How long a helper may take. A checkout of a large repository takes a while; a planted pipe waits for ever.
const PATIENCE: Duration = Duration::from_mins(5);

/// What a helper is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// Become a user, see no more than these paths, and do a job.
    Work {
        /// The user.
        identity: policies::Identity,
        /// Paths that may be read.
        read: Vec<PathBuf>,
        /// Paths that may be changed.
        write: Vec<PathBuf>,
        /// The job.
        job: Box<Job>,
    },
    /// Do a job as the user that the helper is.
    Here(Box<Job>),
    /// Become a user and copy a file to standard error, which is the asker's.
    Take {
        /// The user, if another one.
        identity: Option<policies::Identity>,
        /// The file.
        taking: Taking,
    },
    /// Find out whether this host allows a private view of the file system.
    Probe,
}

/// A file that is to be taken out of a workspace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Taking {
    /// The workspace.
    pub(super) workspace: PathBuf,
    /// The file, from the workspace on.
    pub(super) path: PathBuf,
    /// The most bytes that it may have.
    pub(super) limit: u64,
}

/// What a helper answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The job's outcome.
    Done(Box<Outcome>),
    /// The job's failure.
    Failed(Failure),
    /// The view works.
    Probed,
    /// The file is taken.
    Taken,
}

/// Does a job as a user: in this process if that is this process's own user, else in a helper.
pub(crate) fn work(
    identity: Option<policies::Identity>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    job: Job,
) -> Result<Outcome, Failure> {
    let task = match identity {
        Some(identity) => Task::Work { identity, read, write, job: Box::new(job) },
        None if git_may_look_for_its_configuration() => return job.run().map_err(|e| Failure::from(&e)),
        None => Task::Here(Box::new(job)),
    };
    match ask(&task, Stdio::null())? {
        Reply::Done(outcome) => Ok(*outcome),
        Reply::Failed(failure) => Err(failure),
        Reply::Probed | Reply::Taken => Err(broken("the helper answered another question")),
    }
}

/// Copies a file out of a workspace into `sink`, as a user.
pub(super) fn take(
    identity: Option<policies::Identity>,
    taking: Taking,
    sink: std::fs::File,
) -> Result<(), Failure> {
    match ask(&Task::Take { identity, taking }, sink.into())? {
        Reply::Taken => Ok(()),
        Reply::Failed(failure) => Err(failure),
        Reply::Done(_) | Reply::Probed => Err(broken("the helper answered another question")),
    }
}

/// Whether this host allows a private view of the file system; the reason if not.
pub(super) fn probe_view() -> Result<(), String> {
    match ask(&Task::Probe, Stdio::null()) {
        Ok(Reply::Probed) => Ok(()),
        Ok(Reply::Failed(failure)) | Err(failure) => Err(failure.message),
        Ok(Reply::Done(_) | Reply::Taken) => Err("the helper answered another question".to_owned()),
    }
}

/// Whether the directories in which libgit2 looks for a user's configuration can be entered: where one is closed (`HOME`
/// is another user's, as under `setpriv`), it gives up, while one that does not exist is passed over.
fn git_may_look_for_its_configuration() -> bool {
    ["HOME", "XDG_CONFIG_HOME"].iter().filter_map(std::env::var_os).all(|dir| {
        !matches!(rustix::fs::access(dir, rustix::fs::Access::EXEC_OK), Err(rustix::io::Errno::ACCESS))
    })
}

fn broken(message: impl Into<String>) -> Failure {
    Failure { code: "helper_failed".to_owned(), message: message.into(), hint: None }
}

fn ask(task: &Task, stderr: Stdio) -> Result<Reply, Failure> {
    let fail = |step: &str, e: &(dyn std::error::Error + 'static)| {
        let failure = broken(format!("the helper process failed to {step}: {e}"));
        if is_shortage(e) { Failure { code: shortage::CODE.to_owned(), ..failure } } else { failure }
    };
    let mut child = Command::new("/proc/self/exe")
        .arg("__helper")
        .arg(std::process::id().to_string())
        .env_clear()
        // libgit2 reads no configuration from a directory that does not exist.
        .env("HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .map_err(|e| fail("start", &e))?;
    let body = serde_json::to_vec(task).map_err(|e| fail("be asked", &e))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&body).map_err(|e| fail("be asked", &e))?;
    }
    let mut answer = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    if let Some(mut stdout) = child.stdout.take() {
        read_until(&mut stdout, &mut answer, deadline).map_err(|e| {
            // An overdue helper is ended; it has nothing of its own to save.
            drop(child.kill());
            fail("answer", &e)
        })?;
    }
    child.wait().map_err(|e| fail("end", &e))?;
    serde_json::from_slice(&answer).map_err(|e| fail("answer", &e))
}

fn read_until(
    stdout: &mut std::process::ChildStdout,
    answer: &mut Vec<u8>,
    deadline: Instant,
) -> std::io::Result<()> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd as _;
    let mut buffer = [0_u8; 8192];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(0) => return Err(std::io::ErrorKind::TimedOut.into()),
            // The signal (a reload, a stop) is for others; poll is never restarted by itself (signal(7)).
            Err(nix::errno::Errno::EINTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        match stdout.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => answer.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The helper itself.
///
/// It does not outlive who asked: a daemon that was killed leaves nobody in a workspace that the next one prepares.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let parent = arguments.next().and_then(|pid| pid.to_str()?.parse().ok()).map(Pid::from_raw);
    let mut text = String::new();
    let reply = match die_with(parent).and_then(|()| std::io::stdin().read_to_string(&mut text)) {
        Ok(_) => answer(&text, parent),
        Err(e) => Reply::Failed(broken(format!("the task cannot be read: {e}"))),
    };
    let written = serde_json::to_vec(&reply).map_err(std::io::Error::from);
    match written.and_then(|bytes| std::io::stdout().write_all(&bytes)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Has the kernel end this process with its parent. The thread that asks waits for the answer, so it is there till then.
fn die_with(parent: Option<Pid>) -> std::io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // One that ended before the call sends no signal any more.
    if Some(getppid()) == parent { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
}

fn answer(text: &str, parent: Option<Pid>) -> Reply {
    let task: Task = match serde_json::from_str(text) {
        Ok(task) => task,
        Err(e) => return Reply::Failed(broken(format!("the task cannot be understood: {e}"))),
    };
    match task {
        Task::Probe => match policies::probe_view() {
            Ok(()) => Reply::Probed,
            Err(e) => Reply::Failed(broken(crate::lanes::with_causes(&e))),
        },
        Task::Work { identity, read, write, job } => {
            if let Err(e) = policies::become_user(identity) {
                return Reply::Failed(broken(crate::lanes::with_causes(&e)));
            }
            // The kernel forgets the signal when the user changes (prctl(2), PR_SET_PDEATHSIG).
            if let Err(e) = die_with(parent) {
                return Reply::Failed(broken(e.to_string()));
            }
            if let Err(e) = policies::confine_paths(&read, &write) {
                return Reply::Failed(broken(crate::lanes::with_causes(&e)));
            }
            run(*job)
        }
        Task::Here(job) => run(*job),
        Task::Take { identity, taking } => {
            if let Some(identity) = identity
                && let Err(e) = policies::become_user(identity)
            {
                return Reply::Failed(broken(crate::lanes::with_causes(&e)));
            }
            if let Err(e) = die_with(parent) {
                return Reply::Failed(broken(e.to_string()));
            }
            if let Err(e) = policies::confine_paths(std::slice::from_ref(&taking.workspace), &[]) {
                return Reply::Failed(broken(crate::lanes::with_causes(&e)));
            }
            copy_out(&taking)
        }
    }
}

fn copy_out(taking: &Taking) -> Reply {
    let mut sink = std::io::stderr().lock();
    match workspace::artifacts::take(&taking.workspace, &taking.path, taking.limit, &mut sink) {
        Ok(_) => Reply::Taken,
        Err(e) => {
            let code = if is_shortage(&e) { shortage::CODE } else { "artifact_not_taken" };
            let message = crate::lanes::with_causes(&e);
            Reply::Failed(Failure { code: code.to_owned(), message, hint: None })
        }
    }
}

fn run(job: Job) -> Reply {
    match job.run() {
        Ok(outcome) => Reply::Done(Box::new(outcome)),
        Err(e) if is_shortage(&e) => {
            Reply::Failed(Failure { code: shortage::CODE.to_owned(), ..Failure::from(&e) })
        }
        Err(e) => Reply::Failed(Failure::from(&e)),
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::pthread::{pthread_kill, pthread_self};

    use super::*;

    #[test]
    fn a_signal_does_not_end_the_wait_for_an_answer() {
        let taken = std::sync::Arc::default();
        signal_hook::flag::register(signal_hook::consts::SIGUSR2, std::sync::Arc::clone(&taken)).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "read -r _; echo here"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            tell.send(pthread_self()).unwrap();
            let mut answer = Vec::new();
            read_until(&mut stdout, &mut answer, Instant::now() + PATIENCE).map(|()| answer)
        });
        let thread = told.recv().unwrap();
        for _ in 0..2000 {
            pthread_kill(thread, Signal::SIGUSR2).unwrap();
            std::thread::yield_now();
        }
        stdin.write_all(b"go\n").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"here\n");
        assert!(taken.load(std::sync::atomic::Ordering::Relaxed));
        child.wait().unwrap();
    }
}
