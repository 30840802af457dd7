//! Watching processes with pidfds: the kernel says when one has ended, and a signal never meets a reused pid.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::readiness::{noticed, readable};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;

/// A process that is watched.
///
/// Its descriptor is closed when its end was seen, even while others refer to this: where descriptors are short, settling the
/// end of its run needs one.
#[derive(Debug)]
pub(crate) struct Watched {
    handle: Mutex<Option<Arc<AsyncFd<OwnedFd>>>>,
}

impl Watched {
    /// Watches a process. The caller knows that the pid is the process it means: its own unreaped child, or one whose
    /// start time it compares afterwards.
    pub(crate) fn open(pid: i32) -> std::io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or(std::io::ErrorKind::InvalidInput)?;
        let fd = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        Ok(Watched { handle: Mutex::new(Some(Arc::new(readable(fd)?))) })
    }

    /// Waits for its end. Cancel-safe: the end stays readable.
    pub(crate) async fn ended(&self) -> std::io::Result<()> {
        let Some(handle) = self.handle() else { return Ok(()) };
        noticed(&handle).await?.retain_ready();
        self.locked().take();
        Ok(())
    }

    /// The inode of its pidfd: where the kernel has pidfs, no two processes of one boot share it.
    pub(crate) fn inode(&self) -> std::io::Result<u64> {
        let handle = self.handle().ok_or(rustix::io::Errno::SRCH)?;
        Ok(rustix::fs::fstat(handle.get_ref())?.st_ino)
    }

    /// Sends it a signal. That it has ended is no error: it does not need one.
    pub(crate) fn signal(&self, signal: Signal) -> std::io::Result<()> {
        self.handle().map_or(Ok(()), |handle| self::signal(handle.get_ref(), signal))
    }

    /// None once its end was seen.
    fn handle(&self) -> Option<Arc<AsyncFd<OwnedFd>>> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Option<Arc<AsyncFd<OwnedFd>>>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle on a process; none where it has ended.
pub(crate) fn open(pid: i32) -> std::io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(rustix::io::Errno::SRCH) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Waits for the end of a process; false where it did not come in time. Blocking.
pub(crate) fn ends_within(process: impl AsFd, limit: Duration) -> std::io::Result<bool> {
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
pub(crate) fn signal(process: impl AsFd, signal: Signal) -> std::io::Result<()> {
    match pidfd_send_signal(process, signal) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_ended_process_keeps_no_descriptor_and_needs_no_signal() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let watched = Watched::open(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(watched.inode().is_ok());

        watched.ended().await.unwrap();

        assert!(watched.handle().is_none());
        assert!(watched.inode().is_err());
        watched.signal(Signal::TERM).unwrap();
        watched.ended().await.unwrap();
        child.wait().unwrap();
    }
}
