//! Finds the processes of this host that mention a text, so that the demo can show that none is left.

use std::os::unix::ffi::OsStrExt as _;

use procfs::process::Process;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use host::proc_file::{self, read_bounded};

/// Process, with its start time, which distinguishes it from later processes with its pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenProcess {
    pub(super) pid: i32,
    pub(super) session: i32,
    start_ticks: u64,
}

impl SeenProcess {
    /// Returns true if the process lives. A zombie has ended, and only waits for its parent.
    pub(super) fn lives(&self) -> bool {
        let stat = Process::new(self.pid).and_then(|process| process.stat());
        stat.is_ok_and(|stat| stat.starttime == self.start_ticks && stat.state != 'Z')
    }

    /// Sends SIGKILL to the process, and to no later process with its pid.
    pub(super) fn kill(&self) {
        let Some(pid) = rustix::process::Pid::from_raw(self.pid) else { return };
        // The handle is opened before the comparison. If the process still lives then, the handle refers to it.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if self.lives() {
            // The signal fails if the process has ended by itself meanwhile.
            pidfd_send_signal(handle, Signal::KILL).ok();
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct ProcessCensus {
    pub(super) checked: usize,
    pub(super) found: Vec<SeenProcess>,
}

/// Finds the live processes, without this one, that have a text in their command line or environment, or in the path of
/// their working directory or executable.
pub(super) fn mentioning(text: &str) -> ProcessCensus {
    let mut census = ProcessCensus::default();
    let own_pid = i32::try_from(std::process::id()).unwrap_or_default();
    for process in procfs::process::all_processes().into_iter().flatten().flatten() {
        let Ok(stat) = process.stat() else { continue };
        if stat.state == 'Z' || stat.pid == own_pid {
            continue;
        }
        census.checked += 1;
        if mentions(stat.pid, text.as_bytes()) {
            let seen = SeenProcess { pid: stat.pid, session: stat.session, start_ticks: stat.starttime };
            census.found.push(seen);
        }
    }
    census
}

fn mentions(pid: i32, text: &[u8]) -> bool {
    let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let file = |name: &str| {
        let path = format!("/proc/{pid}/{name}");
        read_bounded(path.as_ref(), proc_file::ENVIRONMENT).is_ok_and(|file| holds(&file.bytes))
    };
    let link = |name: &str| {
        std::fs::read_link(format!("/proc/{pid}/{name}")).is_ok_and(|path| holds(path.as_os_str().as_bytes()))
    };
    file("cmdline") || file("environ") || link("cwd") || link("exe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_environment_until_it_has_ended() {
        let mark = format!("MARK_{}", uuid::Uuid::new_v4().simple());
        let mut child = std::process::Command::new("sleep").arg("600").env(&mark, "1").spawn().unwrap();
        // Until the end of its exec, a child has its parent's environment, or none.
        let census = loop {
            let census = mentioning(&mark);
            if !census.found.is_empty() {
                break census;
            }
            std::thread::yield_now();
        };
        assert_eq!(census.found.len(), 1);
        assert!(census.checked >= 1 && census.found[0].lives());
        census.found[0].kill();
        child.wait().unwrap();
        assert!(!census.found[0].lives());
        assert!(mentioning(&mark).found.is_empty());
    }
}
