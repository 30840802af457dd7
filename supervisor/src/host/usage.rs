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
        let pids = match (cgroup, worker) {
            (Some(group), _) => super::cgroup::processes(&group.join("work")),
            (None, Some(worker)) => self.descendants(worker),
            (None, None) => return None,
        };
        let mut usage = Usage { cpu_us: 0, memory_bytes: 0, processes: 0 };
        for stat in pids.into_iter().filter_map(stat) {
            usage.cpu_us += (stat.utime + stat.stime) * self.tick_us;
            usage.memory_bytes += stat.rss * self.page;
            usage.processes += 1;
        }
        (usage.processes > 0).then_some(usage)
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
