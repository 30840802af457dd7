//! Reads the resource use of a run's processes from procfs, for display only. It never counts as proof that a run lives.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use procfs::FromRead as _;
use procfs::process::Stat;
use serde::{Deserialize, Serialize};

use super::proc_file::{self, read_bounded};

/// Present resource use of a run's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time of the live processes, in microseconds.
    pub cpu_us: u64,
    pub memory_bytes: u64,
    pub processes: usize,
}

/// State of a run's processes at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Resource use of all of them; none if no process was found.
    pub usage: Option<Usage>,
    /// True if a signal or a debugger has stopped the worker (`proc_pid_stat(5)`).
    pub is_stopped: bool,
}

/// Length of the line of `/proc/<pid>/stat`, in bytes: at most 52 numbers and a name.
const STAT: usize = 2048;
/// Limit on a displayed command line, in characters. A worker can make its command line as long as it likes.
const LONGEST_COMMAND: usize = 512;

/// Processes of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// The first processes, each before its children.
    pub processes: Vec<ProcessEntry>,
    /// Number of omitted processes.
    pub more: usize,
}

/// A process as procfs shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEntry {
    pub pid: i32,
    /// Number of ancestors within the run.
    pub depth: usize,
    /// State: `R`, `S`, `D`, `T`, `Z`, …
    pub state: char,
    pub cpu_us: u64,
    pub memory_bytes: u64,
    /// Command line, or the name in brackets.
    pub command: String,
}

/// Snapshot of the host's processes.
#[derive(Debug)]
pub struct Sampler {
    tick_us: u64,
    page: u64,
    /// Children of each process of the host; read once, and only if a run has no cgroup.
    children: OnceCell<HashMap<i32, Vec<i32>>>,
}

impl Default for Sampler {
    /// Makes a snapshot that reads lazily.
    fn default() -> Self {
        Sampler {
            tick_us: 1_000_000 / procfs::ticks_per_second().max(1),
            page: procfs::page_size(),
            children: OnceCell::new(),
        }
    }
}

impl Sampler {
    /// Returns the state of a run's processes: of all in its cgroup, else of the worker and its descendants. The line of each
    /// process is read once.
    pub fn observe(&self, cgroup: Option<&Path>, worker: Option<i32>) -> Observed {
        let mut usage = Usage { cpu_us: 0, memory_bytes: 0, processes: 0 };
        let mut state = None;
        for stat in self.pids(cgroup, worker).into_iter().filter_map(stat) {
            usage.cpu_us += self.cpu_us(&stat);
            usage.memory_bytes += stat.rss * self.page;
            usage.processes += 1;
            if Some(stat.pid) == worker {
                state = Some(stat.state);
            }
        }
        // The worker may be outside of the cgroup that the run was to have.
        let state = state.or_else(|| worker.and_then(stat).map(|stat| stat.state));
        Observed {
            usage: (usage.processes > 0).then_some(usage),
            is_stopped: matches!(state, Some('T' | 't')),
        }
    }

    /// Returns the first `most` processes of a run, each before its children, and the number of the others.
    pub fn tree(&self, cgroup: Option<&Path>, worker: Option<i32>, most: usize) -> Tree {
        let stats: Vec<Stat> = self.pids(cgroup, worker).into_iter().filter_map(stat).collect();
        let more = stats.len().saturating_sub(most);
        let first = in_order(stats).into_iter().take(most);
        Tree { processes: first.map(|(stat, depth)| self.seen(&stat, depth)).collect(), more }
    }

    fn seen(&self, stat: &Stat, depth: usize) -> ProcessEntry {
        // Kernel threads and ended processes have no command line.
        let command = command_line(stat.pid).unwrap_or_else(|| format!("[{}]", stat.comm));
        let command = command.chars().take(LONGEST_COMMAND).collect();
        ProcessEntry {
            pid: stat.pid,
            depth,
            state: stat.state,
            cpu_us: self.cpu_us(stat),
            memory_bytes: stat.rss * self.page,
            command,
        }
    }

    fn cpu_us(&self, stat: &Stat) -> u64 {
        (stat.utime + stat.stime) * self.tick_us
    }

    fn pids(&self, cgroup: Option<&Path>, worker: Option<i32>) -> Vec<i32> {
        match (cgroup, worker) {
            (Some(group), _) => super::cgroup::processes(&group.join("work")),
            (None, Some(worker)) => self.descendants(worker),
            (None, None) => Vec::new(),
        }
    }

    fn descendants(&self, root: i32) -> Vec<i32> {
        let children = self.children.get_or_init(|| {
            let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
            for process in procfs::process::all_processes().into_iter().flatten().flatten() {
                if let Ok(stat) = process.stat() {
                    children.entry(stat.ppid).or_default().push(stat.pid);
                }
            }
            children
        });
        let mut pids = vec![root];
        let mut next = 0;
        while let Some(pid) = pids.get(next) {
            pids.extend(children.get(pid).into_iter().flatten());
            next += 1;
        }
        pids
    }
}

/// Sorts processes so that each comes before its children, and siblings by age. Returns each with the number of its
/// ancestors among them.
fn in_order(mut found: Vec<Stat>) -> Vec<(Stat, usize)> {
    // Youngest first, because `next` is a stack.
    found.sort_by_key(|stat| Reverse(stat.starttime));
    let known: HashSet<i32> = found.iter().map(|stat| stat.pid).collect();
    let mut next = Vec::new();
    let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
    for stat in found {
        if known.contains(&stat.ppid) {
            children.entry(stat.ppid).or_default().push(stat);
        } else {
            next.push((stat, 0));
        }
    }
    let mut ordered = Vec::new();
    while let Some((stat, depth)) = next.pop() {
        next.extend(children.remove(&stat.pid).into_iter().flatten().map(|child| (child, depth + 1)));
        ordered.push((stat, depth));
    }
    ordered
}

/// Returns the beginning of a command line; none if the process has none.
fn command_line(pid: i32) -> Option<String> {
    let path = format!("/proc/{pid}/cmdline");
    let bytes = read_bounded(path.as_ref(), proc_file::COMMAND).ok()?.bytes;
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn stat(pid: i32) -> Option<Stat> {
    let mut line = [0; STAT];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    Stat::from_read(line.get(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn of_a_long_command_line_the_beginning_is_read() {
        let long = "x".repeat(64 * 1024);
        let mut child =
            Command::new("/bin/sh").args(["-c", "read line", &long]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id().cast_signed();
        let read = loop {
            let read = command_line(pid).unwrap_or_default();
            // Between fork and exec a child has its parent's command line.
            if read.contains("read line") {
                break read;
            }
        };
        assert!(read.len() <= proc_file::COMMAND && read.ends_with('x'), "{} bytes", read.len());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_worker_is_observed_with_its_descendants_and_as_stopped_while_it_is() {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "sleep 60 & read line"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let observed = || Sampler::default().observe(None, Some(pid));
        while observed().usage.is_none_or(|usage| usage.processes < 2) {
            std::thread::yield_now();
        }
        assert!(!observed().is_stopped);
        let signal = |signal| {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
        };
        signal(rustix::process::Signal::STOP);
        while !observed().is_stopped {
            std::thread::yield_now();
        }
        let of_it = Sampler::default().tree(None, Some(pid), 9).processes;
        for process in of_it.iter().rev() {
            let pid = rustix::process::Pid::from_raw(process.pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        child.wait().unwrap();
        assert_eq!(observed().usage, None);
    }

    #[test]
    fn each_process_is_shown_before_those_that_it_has_started() {
        let own = stat(std::process::id().cast_signed()).unwrap();
        let made = |pid, ppid, starttime| {
            let mut stat = own.clone();
            (stat.pid, stat.ppid, stat.starttime) = (pid, ppid, starttime);
            stat
        };
        let found = vec![made(5, 3, 9), made(2, 1, 1), made(4, 2, 3), made(3, 2, 2), made(9, 7, 4)];
        let order: Vec<_> = in_order(found).iter().map(|(stat, depth)| (stat.pid, *depth)).collect();
        assert_eq!(order, [(2, 0), (3, 1), (5, 2), (4, 1), (9, 0)]);
    }
}
