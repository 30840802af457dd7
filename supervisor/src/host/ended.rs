//! What a run has left whose shim is dead: its cgroup or pid namespace is ended, with proof, and its directory removed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use shim::rundir::{LockGuard, PidRecord, ProcessIdentity, ProcessStat, RunDir};
use shim::shortage::unless_short;

use super::{cgroup, watch};

/// How long a look kills before it says what withstands SIGKILL. The next look goes on.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

/// Ends what a dead shim has left, by what its run directory records. Blocking.
pub(crate) fn end(dir: &RunDir, pid: &PidRecord) -> Result<(), String> {
    if let Some(group) = group_of(dir)? {
        empty_group(&group)?;
    }
    match &pid.init {
        Some(init) => end_namespace(init),
        None => Ok(()),
    }
}

/// Removes the directory of a run that is over and whose lock is had, with whatever its cgroup or its pid namespace
/// still holds.
pub(crate) fn remove(dir: &RunDir, guard: LockGuard) -> Result<(), String> {
    let boot = shim::rundir::boot_id().map_err(|e| format!("the boot id cannot be read: {e}"))?;
    let pid = unless_short(dir.pid()).map_err(|e| crate::failure::with_causes(&e))?.flatten();
    if let Some(pid) = pid.filter(|pid| pid.boot_id == boot) {
        end(dir, &pid)?;
    }
    if let Some(group) = group_of(dir)? {
        cgroup::kill(&group).map_err(|e| e.to_string())?;
        cgroup::remove_run(&group).map_err(|e| e.to_string())?;
    }
    dir.revoke(guard).map_err(|e| crate::failure::with_causes(&e))?;
    dir.remove().map_err(|e| crate::failure::with_causes(&e))
}

/// The group that a run was started in, while that exists.
///
/// # Errors
/// The host lacks something for now.
pub(crate) fn group_of(dir: &RunDir) -> Result<Option<PathBuf>, String> {
    let spec = unless_short(dir.spec()).map_err(|e| crate::failure::with_causes(&e))?;
    Ok(spec.and_then(|spec| spec.cgroup).filter(|group| group.exists()))
}

/// Kills the first process of a pid namespace, and with it all others, and waits until the kernel says that they are gone.
fn end_namespace(init: &ProcessIdentity) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("process {} of the run: {e}", init.pid);
    let Some(handle) = watch::open(init.pid).map_err(fail)? else { return Ok(()) };
    let is_same = ProcessStat::of(init.pid).is_ok_and(|stat| stat.start_ticks == init.start_ticks)
        && init
            .pidfs_inode
            .is_none_or(|inode| rustix::fs::fstat(&handle).is_ok_and(|now| now.st_ino == inode));
    if !is_same {
        return Ok(());
    }
    watch::signal(&handle, Signal::KILL).map_err(fail)?;
    if watch::ends_within(&handle, LIMIT).map_err(fail)? {
        Ok(())
    } else {
        Err(format!("SIGKILL does not end the pid namespace of process {}", init.pid))
    }
}

/// Kills a group until the kernel says that it is empty. Both leaves: a worker that was just being made is still beside
/// the shim.
pub(crate) fn empty_group(group: &Path) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{}: {e}", group.display());
    let until = Instant::now() + LIMIT;
    while cgroup::populated(group).map_err(fail)? {
        if Instant::now() >= until {
            return Err(format!("SIGKILL does not end {}", described(cgroup::processes(group))));
        }
        cgroup::kill(group).map_err(fail)?;
        cgroup::wait_for_change(group).map_err(fail)?;
    }
    Ok(())
}

/// Processes by pid and name, for a person.
fn described(pids: Vec<i32>) -> String {
    let name = |pid: i32| {
        let stat = procfs::process::Process::new(pid).and_then(|process| process.stat());
        stat.map_or_else(|_| pid.to_string(), |stat| format!("{pid} ({}, state {})", stat.comm, stat.state))
    };
    pids.into_iter().map(name).collect::<Vec<_>>().join(", ")
}
