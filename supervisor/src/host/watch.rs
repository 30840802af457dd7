//! Watching processes with pidfds: the kernel says when one has ended, and a signal never meets a reused pid.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::readiness::{noticed, readable};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use shim::rundir::{ProcessIdentity, ProcessStat};
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
    /// Watches a process. The caller knows that the pid is the process it means: its own unreaped child, or one that it compares
    /// afterwards by [`Watched::is`].
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

    /// Whether it is the process that was described before; not one whose end was seen.
    ///
    /// # Errors
    /// It cannot be told for now.
    pub(crate) fn is(&self, process: &ProcessIdentity) -> std::io::Result<bool> {
        self.handle().map_or(Ok(false), |handle| is_process(handle.get_ref(), process))
    }

    /// Sends it a signal. That it has ended is no error: it does not need one.
    pub(crate) fn signal(&self, signal: Signal) -> std::io::Result<()> {
        self.handle().map_or(Ok(()), |handle| self::signal(handle.get_ref(), signal))
    }

    /// Sends it TERM, and wakes it where it is stopped: it would not get TERM before it goes on.
    pub(crate) fn ask_to_end(&self) -> std::io::Result<()> {
        self.signal(Signal::TERM).and_then(|()| self.signal(Signal::CONT))
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

/// A handle on a process that was described before; none where it has ended, whatever has its pid now.
///
/// # Errors
/// It cannot be told for now. That is no proof of its end.
pub(crate) fn find(process: &ProcessIdentity) -> std::io::Result<Option<OwnedFd>> {
    let Some(handle) = open(process.pid)? else { return Ok(None) };
    Ok(is_process(&handle, process)?.then_some(handle))
}

/// Whether the process of a handle is the one that was described in the same boot. The inode in pidfs is unique for a boot. The start
/// time, which tells them apart on an older kernel, is another one for a reader in another time namespace.
fn is_process(handle: impl AsFd, process: &ProcessIdentity) -> std::io::Result<bool> {
    match process.pidfs_inode {
        Some(inode) => Ok(rustix::fs::fstat(handle)?.st_ino == inode),
        None => has_begun_at(ProcessStat::of(process.pid), process.start_ticks),
    }
}

/// Whether a process has this start time; not one that is not there any more.
fn has_begun_at(stat: std::io::Result<ProcessStat>, start_ticks: u64) -> std::io::Result<bool> {
    match stat {
        Ok(stat) => Ok(stat.start_ticks == start_ticks),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        // A process that ends between the opening of the file and the reading.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(false),
        Err(error) => Err(error),
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
        assert!(watched.handle().is_some());

        watched.ended().await.unwrap();

        assert!(watched.handle().is_none());
        watched.signal(Signal::TERM).unwrap();
        watched.ended().await.unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn only_a_process_that_is_not_there_has_ended() {
        let failed = |number: rustix::io::Errno| has_begun_at(Err(number.into()), 7);
        assert!(!failed(rustix::io::Errno::NOENT).unwrap() && !failed(rustix::io::Errno::SRCH).unwrap());
        for number in [rustix::io::Errno::MFILE, rustix::io::Errno::NOMEM, rustix::io::Errno::IO] {
            assert_eq!(failed(number).unwrap_err().raw_os_error(), Some(number.raw_os_error()));
        }
        assert!(has_begun_at(Err(std::io::ErrorKind::InvalidData.into()), 7).is_err());
    }

    #[test]
    fn a_process_is_found_by_its_start_time_where_nothing_better_is_known() {
        let pid = std::process::id().cast_signed();
        let start_ticks = ProcessStat::of(pid).unwrap().start_ticks;
        let found =
            |start_ticks| find(&ProcessIdentity { pid, start_ticks, pidfs_inode: None }).unwrap().is_some();
        assert!(found(start_ticks) && !found(start_ticks + 1));
    }
}
