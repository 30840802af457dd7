//! Watching processes with pidfds: the kernel says when one has ended, and a signal never meets a reused pid.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::readiness::readable;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;

/// A process that is watched.
#[derive(Debug)]
pub(in crate::daemon) struct Watched {
    fd: AsyncFd<OwnedFd>,
}

impl Watched {
    /// Watches a process. The caller knows that the pid is the process it means: its own unreaped child, or one whose
    /// start time it compares afterwards.
    pub(in crate::daemon) fn open(pid: i32) -> std::io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or(std::io::ErrorKind::InvalidInput)?;
        let fd = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        Ok(Watched { fd: readable(fd)? })
    }

    /// Waits for its end. Cancel-safe: the end stays readable.
    pub(in crate::daemon) async fn ended(&self) -> std::io::Result<()> {
        self.fd.readable().await.map(drop)
    }

    /// The inode of its pidfd: where the kernel has pidfs, no two processes of one boot share it.
    pub(in crate::daemon) fn inode(&self) -> std::io::Result<u64> {
        Ok(rustix::fs::fstat(self.fd.get_ref())?.st_ino)
    }

    /// Sends it a signal. That it has ended is no error: it does not need one.
    pub(in crate::daemon) fn signal(&self, signal: Signal) -> std::io::Result<()> {
        self::signal(self.fd.get_ref(), signal)
    }
}

/// A handle on a process; none where it has ended.
pub(in crate::daemon) fn open(pid: i32) -> std::io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(rustix::io::Errno::SRCH) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Waits for the end of a process; false where it did not come in time. Blocking.
pub(in crate::daemon) fn ends_within(process: impl AsFd, limit: Duration) -> std::io::Result<bool> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    loop {
        match poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(count) => return Ok(count > 0),
            Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Sends a signal. A process that has ended is no error: it does not need one.
pub(in crate::daemon) fn signal(process: impl AsFd, signal: Signal) -> std::io::Result<()> {
    match pidfd_send_signal(process, signal) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => Ok(other?),
    }
}
