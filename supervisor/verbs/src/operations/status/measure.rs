//! Measures the resource use of the daemon and its workers in procfs and cgroups.

use std::path::PathBuf;

use kernel::Timestamp;
use shim::rundir::boottime_us;

use super::disk::DiskSpace;
use super::{DaemonLine, WorkerHealth, WorkerLine};
use api::blocking;
use base::failure::Failure;
use daemon::{LiveRun, Snapshot};
use host::usage::Sampler;

/// Returns the line about the daemon. The caller sets the slots, the number of taken slots and the commits.
pub(super) fn daemon_line(snapshot: &Snapshot) -> DaemonLine {
    let stat = procfs::process::Process::myself().and_then(|process| process.stat()).ok();
    let page = procfs::page_size();
    let start_us =
        stat.as_ref().map(|stat| stat.starttime.saturating_mul(1_000_000) / procfs::ticks_per_second());
    DaemonLine {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: start_us.map_or(0, |start| boottime_us().saturating_sub(start) / 1_000_000),
        memory_bytes: stat.map(|stat| stat.rss.saturating_mul(page)),
        slots: 0,
        taken: 0,
        pools: snapshot.pools.clone(),
        paused: snapshot.paused.clone(),
        stopping: snapshot.stopping.clone(),
        wakeups: snapshot.wakeups,
        commits: 0,
    }
}

/// Returns the resource use of live runs, and the free space on the disk of the root. `tree` is the limit on the listed
/// processes of each run; none for no list.
pub(super) async fn measured(
    root: PathBuf,
    live: Vec<LiveRun>,
    now: Timestamp,
    tree: Option<usize>,
) -> Result<(Vec<WorkerLine>, Option<DiskSpace>), Failure> {
    blocking("procfs could not be read", move || (measure(live, now, tree), DiskSpace::of_directory(&root)))
        .await
}

/// Returns the present resource use of each run.
fn measure(live: Vec<LiveRun>, now: Timestamp, tree: Option<usize>) -> Vec<WorkerLine> {
    let sampler = Sampler::default();
    let boottime = boottime_us();
    let measured = |run: LiveRun| {
        let left = run.deadline_us.map(|deadline| deadline.saturating_sub(boottime) / 1_000_000);
        let observed = sampler.observe(run.cgroup.as_deref(), run.pid);
        WorkerLine {
            age_seconds: now.since(run.started_at).as_secs(),
            left_seconds: left,
            usage: observed.usage,
            is_stopped: observed.is_stopped,
            health: WorkerHealth::assess(&run, left, now),
            last_note: None,
            tree: tree.map(|most| sampler.tree(run.cgroup.as_deref(), run.pid, most)),
            run,
        }
    };
    live.into_iter().map(measured).collect()
}
