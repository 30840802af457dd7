//! Cleans up after a run whose shim is dead: ends its cgroup or pid namespace with proof, and removes its directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use shim::rundir::{LockGuard, PidRecord, ProcessIdentity, RunDir, Straggler};
use shim::shortage::unless_short;

use super::{cgroup, watch};

/// Time after which one pass gives up killing and reports the surviving processes. The next pass continues.
pub const LIMIT: Duration = Duration::from_secs(2);

/// Reason why the processes of a dead shim could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// These processes survive SIGKILL.
    #[error("SIGKILL does not end {}", named(.0))]
    Unkillable(Vec<Straggler>),
    /// The records of the run cannot be read at present.
    #[error("{0}")]
    Unread(String),
    #[error("{what}")]
    Failed {
        what: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

impl EndError {
    fn on(what: String) -> impl Fn(std::io::Error) -> Self {
        move |source| EndError::Failed { what: what.clone(), source }
    }

    /// Returns the error with its causes.
    pub fn in_words(&self) -> String {
        base::failure::with_causes(self)
    }
}

/// Ends the processes of a dead shim, by the records in its run directory. Blocking.
pub fn end(dir: &RunDir, pid: &PidRecord) -> Result<(), EndError> {
    if let Some(group) = group_of(dir).map_err(EndError::Unread)? {
        empty_group(&group)?;
    }
    match &pid.init {
        Some(init) => end_namespace(init),
        None => Ok(()),
    }
}

/// Removes the directory of a run that is over, and ends whatever its cgroup or pid namespace still holds. `guard` is
/// the run's lock.
pub fn remove(dir: &RunDir, guard: LockGuard) -> Result<(), String> {
    let boot = shim::rundir::boot_id().map_err(|e| format!("the boot id cannot be read: {e}"))?;
    let pid = unless_short(dir.pid()).map_err(|e| base::failure::with_causes(&e))?.flatten();
    if let Some(pid) = pid.filter(|pid| pid.boot_id == boot) {
        end(dir, &pid).map_err(|e| e.in_words())?;
    }
    if let Some(group) = group_of(dir)? {
        cgroup::kill(&group).map_err(|e| e.to_string())?;
        cgroup::remove_run(&group).map_err(|e| e.to_string())?;
    }
    dir.revoke(guard).map_err(|e| base::failure::with_causes(&e))?;
    dir.remove().map_err(|e| base::failure::with_causes(&e))
}

/// Returns the group in which a run was started, if it exists.
///
/// # Errors
/// The host lacks resources at present.
pub fn group_of(dir: &RunDir) -> Result<Option<PathBuf>, String> {
    let spec = unless_short(dir.spec()).map_err(|e| base::failure::with_causes(&e))?;
    Ok(spec.and_then(|spec| spec.cgroup).filter(|group| group.exists()))
}

/// Kills the init process of a pid namespace, and with it all others, and waits until the kernel confirms their end.
fn end_namespace(init: &ProcessIdentity) -> Result<(), EndError> {
    let fail = EndError::on(format!("end process {} of the run", init.pid));
    let Some(handle) = watch::find(init).map_err(&fail)? else { return Ok(()) };
    watch::signal(&handle, Signal::KILL).map_err(&fail)?;
    if watch::ends_within(&handle, LIMIT).map_err(&fail)? {
        return Ok(());
    }
    Err(EndError::Unkillable(stragglers(namespace_of(init.pid))))
}

/// Returns the processes in the pid namespace of a process that is not yet reaped.
fn namespace_of(pid: i32) -> Vec<i32> {
    let namespace = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let Some(own) = namespace(pid) else { return vec![pid] };
    let all = procfs::process::all_processes().into_iter().flatten().flatten();
    let inside: Vec<i32> =
        all.map(|process| process.pid()).filter(|pid| namespace(*pid).as_ref() == Some(&own)).collect();
    if inside.is_empty() { vec![pid] } else { inside }
}

/// Kills the processes of a group until the kernel reports it empty. Covers both leaves, because a worker under
/// construction is still in the shim's leaf.
pub fn empty_group(group: &Path) -> Result<(), EndError> {
    let fail = EndError::on(format!("empty the cgroup {}", group.display()));
    let until = Instant::now() + LIMIT;
    while cgroup::populated(group).map_err(&fail)? {
        if Instant::now() >= until {
            return Err(EndError::Unkillable(stragglers(cgroup::processes(group))));
        }
        cgroup::kill(group).map_err(&fail)?;
        cgroup::wait_for_change(group).map_err(&fail)?;
    }
    Ok(())
}

/// Describes processes that were just listed. A process that ended meanwhile is omitted.
pub fn stragglers(pids: Vec<i32>) -> Vec<Straggler> {
    let describe = |pid: i32| {
        let stat = procfs::process::Process::new(pid).and_then(|process| process.stat()).ok()?;
        Some(Straggler { pid, name: stat.comm, state: stat.state })
    };
    pids.into_iter().filter_map(describe).collect()
}

/// Formats processes with pid, name and state, for a person.
pub fn named(processes: &[Straggler]) -> String {
    let name = |one: &Straggler| format!("{} ({}, state {})", one.pid, one.name, one.state);
    if processes.is_empty() {
        return "processes that cannot be named".to_owned();
    }
    processes.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_first_process_whose_start_time_reads_otherwise_is_ended_all_the_same() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id().cast_signed();
        let handle = watch::open(pid).unwrap().unwrap();
        let inode = rustix::fs::fstat(&handle).unwrap().st_ino;
        // The value that a daemon in another time namespace reads.
        let init = ProcessIdentity { pid, start_ticks: 1, pidfs_inode: Some(inode) };
        end_namespace(&init).unwrap();
        let has_ended = watch::ends_within(&handle, Duration::ZERO).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has_ended);
    }
}
