//! Watches processes with pidfds. The kernel reports the end of such a process, and a signal never reaches another process
//! that got its pid.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::readiness::{noticed, readable};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use shim::rundir::{ProcessIdentity, ProcessStat};
use tokio::io::unix::AsyncFd;

/// Watched process.
///
/// Its descriptor is closed once its end was seen, even while other references to it exist. When descriptors are scarce, this
/// frees one for recording the end of the run.
#[derive(Debug)]
pub struct Watched {
    handle: Mutex<Option<Arc<AsyncFd<OwnedFd>>>>,
}

impl Watched {
    /// Watches a process. The caller ensures that the pid belongs to the intended process: the process is an unreaped child
    /// of the caller, or the caller checks it afterwards with [`Watched::is`].
    pub fn open(pid: i32) -> std::io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or(std::io::ErrorKind::InvalidInput)?;
        let fd = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        Ok(Watched { handle: Mutex::new(Some(Arc::new(readable(fd)?))) })
    }

    /// Waits for the end. Cancel-safe: the end stays readable.
    pub async fn ended(&self) -> std::io::Result<()> {
        let Some(handle) = self.handle() else { return Ok(()) };
        noticed(&handle).await?.retain_ready();
        self.locked().take();
        Ok(())
    }

    /// Returns true if this is the described process and its end was not seen.
    ///
    /// # Errors
    /// The identity cannot be determined at present.
    pub fn is(&self, process: &ProcessIdentity) -> std::io::Result<bool> {
        self.handle().map_or(Ok(false), |handle| is_process(handle.get_ref(), process))
    }

    /// Sends a signal. A process that has ended is no error.
    pub fn signal(&self, signal: Signal) -> std::io::Result<()> {
        self.handle().map_or(Ok(()), |handle| self::signal(handle.get_ref(), signal))
    }

    /// Sends SIGTERM, then SIGCONT, because a stopped process handles SIGTERM only after it continues.
    pub fn ask_to_end(&self) -> std::io::Result<()> {
        self.signal(Signal::TERM).and_then(|()| self.signal(Signal::CONT))
    }

    /// Returns the handle; none once the end was seen.
    fn handle(&self) -> Option<Arc<AsyncFd<OwnedFd>>> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Option<Arc<AsyncFd<OwnedFd>>>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a handle on a process; none if it has ended.
pub fn open(pid: i32) -> std::io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(rustix::io::Errno::SRCH) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Opens a handle on a described process; none if it has ended, even if its pid is reused.
///
/// # Errors
/// The identity cannot be determined at present, which does not prove the end.
pub fn find(process: &ProcessIdentity) -> std::io::Result<Option<OwnedFd>> {
    let Some(handle) = open(process.pid)? else { return Ok(None) };
    Ok(is_process(&handle, process)?.then_some(handle))
}

/// Returns true if a handle refers to the described process of the same boot. The inode in pidfs is unique within a boot. On
/// a kernel without pidfs, the start time is compared, which a reader in another time namespace sees differently.
fn is_process(handle: impl AsFd, process: &ProcessIdentity) -> std::io::Result<bool> {
    match process.pidfs_inode {
        Some(inode) => Ok(rustix::fs::fstat(handle)?.st_ino == inode),
        None => has_begun_at(ProcessStat::of_process(process.pid), process.start_ticks),
    }
}

/// Returns true if a process exists and has this start time.
fn has_begun_at(stat: std::io::Result<ProcessStat>, start_ticks: u64) -> std::io::Result<bool> {
    match stat {
        Ok(stat) => Ok(stat.start_ticks == start_ticks),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        // The process ended between the opening and the reading of the file.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits for the end of a process. Returns false if it did not end in time. Blocks. A signal restarts the wait.
pub fn ends_within(process: impl AsFd, limit: Duration) -> std::io::Result<bool> {
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

/// Sends a signal. A process that has ended is no error.
pub fn signal(process: impl AsFd, signal: Signal) -> std::io::Result<()> {
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
        let start_ticks = ProcessStat::of_process(pid).unwrap().start_ticks;
        let found =
            |start_ticks| find(&ProcessIdentity { pid, start_ticks, pidfs_inode: None }).unwrap().is_some();
        assert!(found(start_ticks) && !found(start_ticks + 1));
    }
}
