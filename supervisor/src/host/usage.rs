//! What a run's processes use, read through procfs. For show only: never proof of life.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;

use procfs::process::{Process, Stat};
use serde::{Deserialize, Serialize};

/// What the processes of one run use now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// Processor time of the processes that live, in microseconds.
    pub(crate) cpu_us: u64,
    /// Resident memory, in bytes.
    pub(crate) memory_bytes: u64,
    /// How many processes there are.
    pub(crate) processes: usize,
}

/// How much of a command line is shown; a worker writes its own.
const LONGEST_COMMAND: usize = 512;

/// The processes of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// The first of them, each before those that it has started.
    pub(crate) processes: Vec<Seen>,
    /// How many are left out.
    pub(crate) more: usize,
}

/// A process as procfs shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) pid: i32,
    /// How many processes of the run are above it.
    pub(crate) depth: usize,
    /// The state: `R`, `S`, `D`, `T`, `Z`, …
    pub(crate) state: char,
    pub(crate) cpu_us: u64,
    pub(crate) memory_bytes: u64,
    /// Its command line, or its name in brackets.
    pub(crate) command: String,
}

/// One look at the host's processes.
#[derive(Debug)]
pub(crate) struct Sampler {
    tick_us: u64,
    page: u64,
    /// The children of each process; read once, and only if a run has no cgroup.
    children: OnceCell<HashMap<i32, Vec<i32>>>,
}

impl Sampler {
    /// A look that has not read anything yet.
    pub(crate) fn new() -> Self {
        Sampler {
            tick_us: 1_000_000 / procfs::ticks_per_second().max(1),
            page: procfs::page_size(),
            children: OnceCell::new(),
        }
    }

    /// Adds up the processes of a run: those of its cgroup, or else the worker and its descendants.
    pub(crate) fn usage(&self, cgroup: Option<&Path>, worker: Option<i32>) -> Option<Usage> {
        let mut usage = Usage { cpu_us: 0, memory_bytes: 0, processes: 0 };
        for stat in self.pids(cgroup, worker).into_iter().filter_map(stat) {
            usage.cpu_us += self.cpu_us(&stat);
            usage.memory_bytes += stat.rss * self.page;
            usage.processes += 1;
        }
        (usage.processes > 0).then_some(usage)
    }

    /// The processes of a run, each before those that it has started, and how many more there are than `most`.
    pub(crate) fn tree(&self, cgroup: Option<&Path>, worker: Option<i32>, most: usize) -> Tree {
        let mut left: Vec<Stat> = self.pids(cgroup, worker).into_iter().filter_map(stat).collect();
        left.sort_by_key(|stat| stat.starttime);
        let mut tree = Tree { processes: Vec::new(), more: left.len().saturating_sub(most) };
        let known: Vec<i32> = left.iter().map(|stat| stat.pid).collect();
        let mut next: Vec<(i32, usize)> =
            left.iter().filter(|stat| !known.contains(&stat.ppid)).rev().map(|stat| (stat.pid, 0)).collect();
        while let Some((pid, depth)) = next.pop() {
            let Some(at) = left.iter().position(|stat| stat.pid == pid) else { continue };
            let stat = left.remove(at);
            next.extend(
                left.iter().filter(|child| child.ppid == pid).rev().map(|child| (child.pid, depth + 1)),
            );
            if tree.processes.len() < most {
                tree.processes.push(self.seen(&stat, depth));
            }
        }
        tree
    }

    fn seen(&self, stat: &Stat, depth: usize) -> Seen {
        let command = Process::new(stat.pid).and_then(|process| process.cmdline()).unwrap_or_default();
        // A kernel thread and a process that has ended have none.
        let command = if command.is_empty() { format!("[{}]", stat.comm) } else { command.join(" ") };
        let command = command.chars().take(LONGEST_COMMAND).collect();
        Seen {
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
        let mut found = vec![root];
        let mut next = 0;
        while let Some(pid) = found.get(next) {
            found.extend(children.get(pid).into_iter().flatten());
            next += 1;
        }
        found
    }
}

fn stat(pid: i32) -> Option<Stat> {
    Process::new(pid).ok()?.stat().ok()
}
