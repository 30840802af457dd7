//! Shares of a run in resources that the kernel counts for the whole host, or for all processes of a user.
//!
//! See decision 0250.

use std::path::Path;

/// Pseudo-terminals of a run that has a view. The host has `kernel.pty.max` of them, 4096 by default, of which 1024 are
/// for its own instance of devpts alone.
pub(crate) const TERMINALS: u32 = 64;

/// Queued signals and POSIX timers of a run's user (`RLIMIT_SIGPENDING`). The kernel compares the count of the user with
/// the limit of the caller, so other processes of the user keep the rest.
pub(crate) const PENDING: u64 = 4096;

/// Fewest open files to which the host's table lowers the limit of one process: programs need about this many.
const FEWEST_FILES: u64 = 256;

/// Limits of inotify(7) for a user: the host's, and the name that a user namespace has for its own.
const WATCHES: [(&str, &str); 2] = [
    ("/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances"),
    ("/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"),
];

/// Returns the number of files that the host can have open (`proc_sys_fs(5)`); none if it cannot be read.
pub(crate) fn file_max() -> Option<u64> {
    number("/proc/sys/fs/file-max")
}

/// Limits that bound the open files of a run together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holders {
    /// Open files of one process.
    pub(crate) files: Option<u64>,
    /// Processes of the run.
    pub(crate) pids: Option<u64>,
}

impl Holders {
    /// Returns the limit of open files for one process, so that all processes of a run together leave a quarter of the
    /// host's table to others. Systemd makes the table larger than any memory, so there the policy's own limit stays.
    pub(crate) fn files_of_each(self, file_max: Option<u64>) -> Option<u64> {
        let (Some(files), Some(pids), Some(all)) = (self.files, self.pids, file_max) else {
            return self.files;
        };
        let share = all / 4 * 3 / pids.max(1);
        Some(files.min(share.max(FEWEST_FILES)))
    }
}

/// Gives the user namespace of the caller, which has all capabilities in it, half of the inotify instances and watches
/// that a user may have. Without write access to `/proc/sys`, as in some containers, the run shares all of them.
pub(crate) fn limit_watches() {
    for (host, own) in WATCHES {
        if let Some(all) = number(host) {
            std::fs::write(own, (all / 2).max(1).to_string()).ok();
        }
    }
}

fn number(path: impl AsRef<Path>) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_processes_of_a_run_leave_a_quarter_of_the_hosts_files() {
        let each = |files, pids, all| Holders { files, pids }.files_of_each(all);
        let usual = |all| each(Some(4096), Some(2048), Some(all));
        // With systemd; with 24 GiB and with 2 GiB of memory under another init.
        for (all, files) in [(i64::MAX.unsigned_abs(), 4096), (2_400_000, 878), (200_000, 256)] {
            assert_eq!(usual(all), Some(files), "{all}");
        }
        assert_eq!(each(Some(64), Some(2048), Some(200_000)), Some(64));
        assert_eq!(each(None, Some(2048), Some(200_000)), None);
        assert_eq!(each(Some(4096), None, Some(200_000)), Some(4096));
        assert_eq!(each(Some(4096), Some(2048), None), Some(4096));
    }
}
