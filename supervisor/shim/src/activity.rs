//! Progress of a run's processes, as the kernel counts it. It separates a silent worker that works from a worker that
//! hangs.
//!
//! A sample reads a bounded number of files, and none that could block the shim, because a worker may start hostile
//! processes and hang in them. It is no proof of life.
//!
//! The shim takes the samples, because the limit on silence holds while no daemon runs. In doubt a worker goes on, and
//! its time limit ends it. So a worker that spins is never stalled.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::time::{Duration, SystemTime};

use procfs::process::Process;

use crate::record;
use crate::tree::{Member, Tree};

/// Limit on the processes and threads that a sample reads. A run with more counts as at work.
const MOST: usize = 4096;
/// Processor time that counts as progress: this part of the time between two samples. An agent that waits for its
/// service uses up to a fiftieth (Codex 0.169), and a program that works uses more.
const CPU_PART: u32 = 20;
/// Bytes a second, read and written in any way, that count as progress. An agent that waits moves up to 13 KB (Codex 0.169).
const IO_PER_SECOND: u64 = 64 * 1024;

/// A sample of the processes of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Processor time of all processes, ended processes included, in microseconds.
    pub(crate) cpu_us: u64,
    /// Bytes that the live processes have read and written: files, pipes and sockets.
    pub(crate) io_bytes: u64,
    /// Digest of the set of live processes.
    pub(crate) processes: u64,
    /// Time of the last heartbeat, by a clock that any user may set: a different value is a new heartbeat.
    pub(crate) heartbeat: Option<SystemTime>,
    /// Time that the host has slept since boot, in microseconds: nothing could make progress meanwhile.
    pub(crate) slept_us: u64,
    /// True if the worker may stand still without a fault: it is frozen, or has more processes than a sample reads.
    pub(crate) is_excused: bool,
}

impl Activity {
    /// Samples the processes of a tree.
    pub(crate) fn sample(tree: &Tree, heartbeat: Option<SystemTime>, slept_us: u64) -> Self {
        let members = tree.walk(MOST);
        let is_excused = members.is_none() || tree.is_frozen();
        let members = members.unwrap_or_default();
        let ticks: u64 = members.iter().map(|member| member.cpu_ticks).sum();
        Activity {
            cpu_us: tree.cpu_us().unwrap_or_else(|| record::cpu_us().saturating_add(micros(ticks))),
            io_bytes: members.iter().filter_map(moved).fold(0, u64::saturating_add),
            processes: members.iter().map(identity).fold(0, u64::wrapping_add),
            heartbeat,
            slept_us,
            is_excused,
        }
    }

    /// Returns true if this sample shows progress since the sample taken `elapsed` earlier.
    pub(crate) fn is_progress(&self, before: &Activity, elapsed: Duration) -> bool {
        let cpu = Duration::from_micros(self.cpu_us.abs_diff(before.cpu_us));
        let bytes = self.io_bytes.abs_diff(before.io_bytes);
        self.is_excused
            || self.processes != before.processes
            || self.heartbeat != before.heartbeat
            || (!cpu.is_zero() && cpu >= elapsed / CPU_PART)
            || bytes > elapsed.as_secs().saturating_add(1).saturating_mul(IO_PER_SECOND)
    }
}

/// Returns the bytes that a process has read and written. A process in an uninterruptible wait is skipped: it may hold
/// the lock under which the kernel reads the file (`exec_update_lock`), for as long as a file system hangs.
fn moved(member: &Member) -> Option<u64> {
    if member.state == 'D' {
        return None;
    }
    // EACCES: the shim may not read the file. The processor time still counts.
    let io = Process::new(member.pid).and_then(|process| process.io()).ok()?;
    Some(io.rchar.saturating_add(io.wchar))
}

fn identity(member: &Member) -> u64 {
    let mut hasher = DefaultHasher::new();
    (member.pid, member.start_ticks).hash(&mut hasher);
    hasher.finish()
}

fn micros(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000) / procfs::ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_what_is_counted_is_progress_and_what_a_waiting_program_does_is_none() {
        let before = Activity { cpu_us: 5_000, io_bytes: 100_000, processes: 7, ..Activity::default() };
        let minute = Duration::from_mins(1);
        let is_progress = |now: Activity| now.is_progress(&before, minute);
        let now = || before.clone();
        assert!(!is_progress(now()));
        assert!(
            !is_progress(Activity { cpu_us: 5_000 + 2_999_000, ..now() }),
            "what a program does that waits"
        );
        assert!(is_progress(Activity { cpu_us: 5_000 + 3_000_000, ..now() }));
        assert!(!is_progress(Activity { io_bytes: 100_000 + 60 * 64 * 1024, ..now() }));
        assert!(is_progress(Activity { io_bytes: 100_000 + 62 * 64 * 1024, ..now() }));
        assert!(is_progress(Activity { processes: 8, ..now() }), "one began or ended");
        assert!(is_progress(Activity { heartbeat: Some(SystemTime::UNIX_EPOCH), ..now() }));
        assert!(is_progress(Activity { is_excused: true, ..now() }));
        assert!(!before.is_progress(&before, Duration::ZERO), "no time, and nothing done");
    }

    #[test]
    fn what_a_process_reads_and_writes_is_counted_while_it_lives() {
        use std::io::{Read as _, Write as _};
        use std::process::{Command, Stdio};

        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let tree = Tree::new(child.id().cast_signed(), None, None);
        let mut pass = |bytes: &[u8]| {
            input.write_all(bytes).unwrap();
            output.read_exact(&mut vec![0; bytes.len()]).unwrap();
            let members = tree.walk(MOST).unwrap();
            let cat = members.iter().find(|member| member.pid == child.id().cast_signed()).unwrap();
            moved(cat)
        };
        if let (Some(before), Some(after)) = (pass(b"x"), pass(&vec![0; 32 * 1024])) {
            assert!(after - before >= 64 * 1024, "{before} {after}");
        } else {
            assert!(!std::path::Path::new("/proc/self/io").exists(), "this kernel counts it");
        }
        drop(input);
        child.wait().unwrap();
    }

    #[test]
    fn a_tree_that_is_too_large_to_look_at_is_at_work() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let tree = Tree::new(child.id().cast_signed(), None, None);
        assert!(tree.walk(0).is_none() && tree.walk(MOST).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_processes_below_this_one_are_looked_at() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let tree = Tree::new(child.id().cast_signed(), None, None);
        let look = || Activity::sample(&tree, None, 0);
        let with = look();
        child.kill().unwrap();
        child.wait().unwrap();
        let without = look();
        assert!(without.is_progress(&with, Duration::from_hours(1)), "{with:?} {without:?}");
        assert!(!with.is_excused && !without.is_excused);
    }
}
