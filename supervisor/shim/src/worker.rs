//! Starts the worker: this binary again as `confine`, with its pipes.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use rustix::fs::Uid;

use crate::console::Console;
use crate::mailbox::Channel;
use crate::rundir::{ProcessIdentity, RunDir, ShimSpec, Stdin, identity_of};

/// Path of the running program, even after an upgrade has replaced its file.
const OWN_BINARY: &str = "/proc/self/exe";

/// Reasons why the worker could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    /// The worker's standard input is missing.
    #[error("open the standard input {path}")]
    Stdin {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    #[error("open the report pipe")]
    ReportPipe(#[source] io::Error),
    /// The process could not be made.
    #[error("spawn {OWN_BINARY}")]
    Spawn(#[source] io::Error),
    /// A pipe's mode could not be set.
    #[error("set up the output pipes")]
    OutputPipes(#[source] io::Error),
    /// No terminal could be made.
    #[error("open the terminal")]
    Terminal(#[source] io::Error),
    /// No pipes for messages.
    #[error("open the pipes of messages")]
    Messages(#[source] io::Error),
}

/// Process of the worker, and the shim's ends of its pipes or its terminal, all non-blocking.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Identity of the process, which is `confine` first and the command after the exec.
    pub(crate) identity: ProcessIdentity,
    pub(crate) stdout: OwnedFd,
    /// Standard error; none at a terminal, where all output comes from the terminal.
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) report: PipeReader,
    /// Pipes of messages, if the agent takes messages.
    pub(crate) channel: Option<Channel>,
    /// Terminal of the worker, if it has one.
    pub(crate) console: Option<Console>,
}

impl Worker {
    /// Starts `confine` for this run.
    ///
    /// There is no `pre_exec`, so the standard library uses `posix_spawn`; it also resets the signal mask and SIGPIPE for the
    /// child. The process is single-threaded: no other code can spawn while the report pipe is inheritable.
    pub(crate) fn spawn(run: &RunDir, spec: &ShimSpec) -> Result<Self, SpawnError> {
        let owner = spec.run_context.identity.map(|identity| (identity.uid, identity.gid));
        let console = spec.terminal.map(|size| Console::open(run, size, owner)).transpose();
        let console = console.map_err(SpawnError::Terminal)?;
        let [stdin, stdout, stderr] = match &console {
            Some(console) => at_terminal(console).map_err(SpawnError::Terminal)?,
            None => [stdin(spec)?, Stdio::piped(), Stdio::piped()],
        };
        // Inside a pid namespace, the shim has no number.
        let parent = if spec.run_context.pid_namespace.is_some() { 0 } else { std::process::id() };
        let (report, report_end) = io::pipe().map_err(SpawnError::ReportPipe)?;
        fcntl(&report_end, FcntlArg::F_SETFD(FdFlag::empty()))
            .map_err(|error| SpawnError::ReportPipe(error.into()))?;

        let channel = spec.conversation.as_ref().map(|_| open_channel()).transpose();
        let channel = channel.map_err(SpawnError::Messages)?;
        let (channel, ends) = channel.unzip();
        let descriptors =
            ends.iter().flat_map(|(messages, receipts)| [messages.as_raw_fd(), receipts.as_raw_fd()]);

        let spawned = Command::new(OWN_BINARY)
            .arg0("supervisor-confine")
            .arg("__confine")
            .arg(run.path())
            .arg(report_end.as_raw_fd().to_string())
            .arg(parent.to_string())
            .args(descriptors.map(|descriptor| descriptor.to_string()))
            .env_clear()
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .spawn();
        drop((report_end, ends));
        let mut child = spawned.map_err(SpawnError::Spawn)?;

        let failed = |error: io::Error| SpawnError::OutputPipes(error);
        let (stdout, stderr) = match &console {
            Some(console) => (console.output().map_err(failed)?, None),
            None => {
                pipes(&mut child, owner).map(|(stdout, stderr)| (stdout, Some(stderr))).map_err(failed)?
            }
        };
        rustix::io::ioctl_fionbio(&report, true).map_err(|error| failed(error.into()))?;
        let pid = child.id().cast_signed();
        // The process is unreaped, so its `stat` exists. 0 is the start time of no process that can be a worker.
        let identity = identity_of(pid).unwrap_or(ProcessIdentity { pid, start_ticks: 0, pidfs_inode: None });
        Ok(Self { identity, stdout, stderr, report, channel, console })
    }
}

/// Opens the worker's standard input, unless the worker has a terminal.
fn stdin(spec: &ShimSpec) -> Result<Stdio, SpawnError> {
    match &spec.stdin {
        Stdin::Null => Ok(Stdio::null()),
        Stdin::File(path) => File::open(path)
            .map(Stdio::from)
            .map_err(|source| SpawnError::Stdin { path: path.clone(), source }),
    }
}

/// Returns the three standard streams of a worker at a terminal. `confine` makes it the controlling terminal.
fn at_terminal(console: &Console) -> io::Result<[Stdio; 3]> {
    Ok([console.slave()?.into(), console.slave()?.into(), console.slave()?.into()])
}

/// Takes the shim's ends of the output pipes, and makes them non-blocking.
fn pipes(child: &mut Child, owner: Option<(u32, u32)>) -> io::Result<(OwnedFd, OwnedFd)> {
    let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
    let stdout = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
    let stderr = OwnedFd::from(child.stderr.take().ok_or_else(missing)?);
    for fd in [stdout.as_fd(), stderr.as_fd()] {
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    if let Some((uid, _)) = owner {
        // Otherwise a worker with a uid of its own cannot open /dev/stdout or /dev/stderr. If the shim may not give the
        // pipes away, the worker has the shim's uid anyway.
        let owner = Some(Uid::from_raw(uid));
        rustix::fs::fchown(&stdout, owner, None).ok();
        rustix::fs::fchown(&stderr, owner, None).ok();
    }
    Ok((stdout, stderr))
}

/// Makes the pipes of messages. Returns the shim's ends, and the ends that `confine` inherits.
fn open_channel() -> io::Result<(Channel, (PipeReader, PipeWriter))> {
    let ((messages_end, messages), (receipts, receipts_end)) = (io::pipe()?, io::pipe()?);
    for fd in [messages_end.as_fd(), receipts_end.as_fd()] {
        fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    }
    for fd in [messages.as_fd(), receipts.as_fd()] {
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    Ok((Channel { messages, receipts }, (messages_end, receipts_end)))
}
