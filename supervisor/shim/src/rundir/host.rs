//! Identifies this boot, its clocks, and processes in a form that others can recognise.

use std::fs;
use std::io;

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use serde::{Deserialize, Serialize};

use super::ProcessStat;

/// `PID_FS_MAGIC` of `linux/magic.h`: on older kernels all pidfds share one anonymous inode, which says nothing.
const PIDFS_MAGIC: i64 = 0x5049_4446;

/// Identity of a process. Its id alone could belong to a later process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: i32,
    /// The start time, in clock ticks since boot.
    pub start_ticks: u64,
    /// The inode in pidfs, unique for one boot, where the kernel has pidfs (6.9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pidfs_inode: Option<u64>,
}

/// Returns the id of this boot.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Returns the time since boot, suspended time included, in microseconds.
pub fn boottime_us() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * 1_000_000 + nanoseconds / 1_000
}

/// Returns the time that the host has slept since boot, in microseconds.
pub(crate) fn slept_us() -> u64 {
    let awake = clock_gettime(ClockId::Monotonic);
    let awake = u64::try_from(awake.tv_sec).unwrap_or(0) * 1_000_000
        + u64::try_from(awake.tv_nsec).unwrap_or(0) / 1_000;
    boottime_us().saturating_sub(awake)
}

/// Returns the time of the host's clock, in microseconds since the epoch.
pub(crate) fn wall_us() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

/// Identifies a process that cannot be reaped meanwhile: the calling process, or an unreaped child.
pub(crate) fn identity_of(pid: i32) -> io::Result<ProcessIdentity> {
    let start_ticks = ProcessStat::of_process(pid)?.start_ticks;
    Ok(ProcessIdentity { pid, start_ticks, pidfs_inode: Pid::from_raw(pid).and_then(pidfs_inode) })
}

/// Identifies the calling process.
pub(crate) fn own_identity() -> io::Result<ProcessIdentity> {
    identity_of(getpid().as_raw_nonzero().get())
}

fn pidfs_inode(pid: Pid) -> Option<u64> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let on_pidfs = rustix::fs::fstatfs(&pidfd).ok()?.f_type == PIDFS_MAGIC;
    if on_pidfs { Some(rustix::fs::fstat(&pidfd).ok()?.st_ino) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward_and_the_boot_has_an_id() {
        let before = boottime_us();
        assert!(before > 0 && boottime_us() >= before);
        assert_eq!(boot_id().unwrap().len(), 36);
    }
}
