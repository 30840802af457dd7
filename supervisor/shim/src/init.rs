//! `__init <run dir>`: the first process of a run's pid namespace, for runs that have one.
//!
//! The worker is the shim's child, as in every run, and is born beside this process. This process has two duties: it
//! reaps orphans, and it ends with the shim. When it ends, the kernel kills all other processes of the namespace, and
//! shows its end only after that (`pid_namespaces(7)`). So its end proves that no process of the run is left.
//!
//! See decision 0028.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitCode, Stdio};

use nix::sys::prctl;
use nix::sys::signal::Signal;
use policies::PidNamespace;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, WaitOptions, wait};

use crate::rundir::{FailedStart, ProcessIdentity, Step, identity_of};
use crate::signals::{child_pipe, drain};

/// Reasons why a run has no pid namespace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InitError {
    /// This host does not permit one, or has no more of them.
    #[error(transparent)]
    Namespace(#[from] policies::NamespaceError),
    /// Its first process could not be started.
    #[error("start the first process of the namespace")]
    Spawn(#[source] io::Error),
    /// Its first process could not be identified.
    #[error("read the identity of the first process of the namespace")]
    Identity(#[source] io::Error),
}

/// The first process of the namespace that the caller's next children are born in. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Init {
    pub(crate) identity: ProcessIdentity,
    _life: Option<ChildStdin>,
}

impl Init {
    /// Makes a namespace and starts its first process. For a single-threaded caller.
    pub(crate) fn start(namespace: PidNamespace, run: &Path) -> Result<Self, InitError> {
        namespace.enter()?;
        let mut child = Command::new("/proc/self/exe")
            .arg0("supervisor-init")
            .arg("__init")
            .arg(run)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(InitError::Spawn)?;
        let life = child.stdin.take();
        let identity = identity_of(child.id().cast_signed()).map_err(InitError::Identity)?;
        // The capabilities come after the first process, which needs none of them. The worker's view needs them.
        namespace.pass_on()?;
        Ok(Self { identity, _life: life })
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.identity.pid)
    }
}

/// Reaps until the shim has ended.
pub(crate) fn main() -> ExitCode {
    match reap_until_alone() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn reap_until_alone() -> io::Result<()> {
    prctl::set_name(c"supervisor-init").ok();
    // The end of standard input means the same. This signal also works while the process is stopped.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    let children = child_pipe()?;
    let mut life = io::stdin();
    rustix::io::ioctl_fionbio(&life, true)?;
    loop {
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_)) | Err(rustix::io::Errno::INTR)) {}
        let (life_fd, child_fd) = (life.as_fd(), children.as_fd());
        let mut fds = [
            PollFd::from_borrowed_fd(life_fd, PollFlags::IN),
            PollFd::from_borrowed_fd(child_fd, PollFlags::IN),
        ];
        // EINTR means the end of a child, which its pipe shows as well.
        poll(&mut fds, None).ok();
        drain(&children);
        match life.read(&mut [0]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Tries whether this host permits a pid namespace. For a single-threaded process that then exits.
pub fn probe(namespace: PidNamespace) -> Result<(), String> {
    let described = |error: InitError| FailedStart::new(Step::Namespace, &error).error;
    Init::start(namespace, Path::new("/")).map(drop).map_err(described)
}
