//! Process of a script: its start, its environment, and the end of all its processes.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kernel::ToolResult;
use rustix::process::{Pid, Signal, WaitStatus, getpid, kill_process_group, set_child_subreaper};
use shim::Tree;
use tempfile::TempDir;

use super::head::OutputHead;
use base::environment;
use base::failure::Failure;
use host::find_program::find_python;
use host::watch::Watched;

/// Kept amounts of standard output and of standard error, in KiB.
const OUTPUT: usize = 50;
const ERRORS: usize = 10;
/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);
/// Longest wait for the end of processes after KILL.
const KILLED: Duration = Duration::from_secs(5);
/// Interval between two looks at the remaining processes.
const ROUND: Duration = Duration::from_millis(5);

/// Variables of the server that a script gets. Others are withheld, such as the token and the agent's keys.
const VARIABLES: [&str; 17] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TERM",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Cause of the end of a script.
#[derive(Debug)]
pub(super) enum ScriptEnd {
    /// The script has ended, or its end cannot be watched.
    Itself(std::io::Result<()>),
    Timeout,
    Interrupted,
}

/// Text that a script has written, and the end of its process.
#[derive(Debug, Default)]
pub(super) struct ScriptOutput {
    pub(super) output: String,
    pub(super) errors: String,
    /// Ending of its process; empty on success.
    pub(super) how: String,
    /// Note on processes that could not be ended.
    pub(super) left: String,
}

#[derive(Debug)]
pub(super) struct Script {
    pid: i32,
    /// Reaped with the others of the tree.
    _child: Child,
    watched: Watched,
    tree: Tree,
    output: OutputHead,
    errors: OutputHead,
    /// Directory of the script and its module, removed with this.
    _dir: TempDir,
}

impl Script {
    /// Starts a script. Returns it with the socket on which it calls tools.
    pub(super) fn start(code: &str, module: &str) -> Result<(Self, UnixStream), Failure> {
        let python = python()?;
        let failed =
            |what: &str, e: &dyn std::error::Error| Failure::failed(format!("failed to {what}: {e}"));
        // Orphaned descendants of the script become children of this process, which can then end them (prctl(2)).
        set_child_subreaper(Some(getpid()))
            .map_err(|e| failed("become the parent of what scripts leave", &e))?;
        let dir = tempfile::Builder::new().prefix("script-").tempdir();
        let dir = dir.map_err(|e| failed("make a directory for the script", &e))?;
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text);
        write("script.py", code)
            .and_then(|()| write("supervisor_tools.py", module))
            .map_err(|e| failed("write the script", &e))?;
        let (ours, theirs) = UnixStream::pair().map_err(|e| failed("make the socket of the tools", &e))?;
        let mut command = Command::new("/proc/self/exe");
        if let Ok(program) = std::env::current_exe() {
            command = Command::new(program);
        }
        let parent = getpid().as_raw_nonzero().to_string();
        command.arg("__script").args([
            OsString::from(parent),
            python.into(),
            dir.path().join("script.py").into(),
        ]);
        command
            .env_clear()
            .envs(VARIABLES.iter().filter_map(|name| Some((name, environment::variable(name)?))));
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| failed("start the script", &e))?;
        // The command holds the script's end of the socket.
        drop(command);
        let pid = child.id().cast_signed();
        let reading = |pipe: Option<OwnedFd>, most: usize| {
            pipe.ok_or(std::io::ErrorKind::BrokenPipe.into()).and_then(|pipe| OutputHead::read(pipe, most))
        };
        let output = reading(child.stdout.take().map(OwnedFd::from), OUTPUT);
        let errors = reading(child.stderr.take().map(OwnedFd::from), ERRORS);
        let begun = (|| Ok::<_, std::io::Error>((output?, errors?, Watched::open(pid)?)))();
        match begun {
            Ok((output, errors, watched)) => {
                let script =
                    Script { pid, _child: child, watched, tree: Tree::below(pid), output, errors, _dir: dir };
                Ok((script, ours))
            }
            Err(e) => {
                // The script has started nothing yet, so only the child itself is ended.
                drop(child.kill().and_then(|()| child.wait()));
                Err(failed("watch the script", &e))
            }
        }
    }

    /// Waits until the script itself has ended. Cancel-safe.
    pub(super) async fn ended(&self) -> std::io::Result<()> {
        self.watched.ended().await
    }

    /// Ends the script if it is still running, and all its processes. Returns its output.
    pub(super) async fn finish(mut self, end: ScriptEnd) -> (ToolResult, ScriptOutput) {
        let asked = match &end {
            ScriptEnd::Itself(Ok(())) => None,
            ScriptEnd::Itself(Err(_)) => Some(ToolResult::Error),
            ScriptEnd::Timeout => Some(ToolResult::Timeout),
            ScriptEnd::Interrupted => Some(ToolResult::Interrupted),
        };
        if asked.is_some() {
            if !self.tree.terminate() {
                self.signal_group(Signal::TERM);
            }
            // A script that has not ended by then is killed below.
            drop(tokio::time::timeout(GRACE, self.watched.ended()).await);
        }
        let (status, is_gone) = self.kill().await;
        let is_success = status.is_some_and(|status| status.exit_status() == Some(0));
        let itself = if is_success { ToolResult::Success } else { ToolResult::Error };
        let left = if is_gone {
            String::new()
        } else {
            "[a process that the script has started could not be ended; it ends with the run]".to_owned()
        };
        let output = ScriptOutput {
            output: self.output.text().await,
            errors: self.errors.text().await,
            how: how(status),
            left,
        };
        (asked.unwrap_or(itself), output)
    }

    /// Sends KILL until no process is left. Returns the script's status, and true if none is left.
    async fn kill(&mut self) -> (Option<WaitStatus>, bool) {
        // The script is not reaped yet, so its pid still names its group. Without /proc, only this group can be found.
        self.signal_group(Signal::KILL);
        let (mut status, until) = (None, Instant::now() + KILLED);
        loop {
            self.tree.kill();
            let reaped = self.tree.reap();
            status = status.or(reaped.worker);
            if reaped.childless || Instant::now() >= until {
                return (status, reaped.childless);
            }
            tokio::time::sleep(ROUND).await;
        }
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.pid) {
            // ESRCH: it has no group yet, or has ended; the walk of the tree finds it.
            kill_process_group(group, signal).ok();
        }
    }
}

/// Describes the ending of a script; empty on success.
fn how(status: Option<WaitStatus>) -> String {
    let Some(status) = status else { return "[its end was not seen]".to_owned() };
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => String::new(),
        (Some(code), _) => format!("[exit code {code}]"),
        (None, Some(signal)) => format!("[ended by signal {signal}]"),
        (None, None) => "[ended]".to_owned(),
    }
}

/// Finds the interpreter in the run's search path.
fn python() -> Result<PathBuf, Failure> {
    let path = environment::variable("PATH").unwrap_or_default();
    find_python(&path).ok_or_else(|| {
        Failure::failed(format!("there is no python3 in the search path of this run: {}", path.display())).hint(
            "call the tools one by one; an operator installs Python 3 where the policy lets runs execute it, such as /usr/bin",
        )
    })
}
