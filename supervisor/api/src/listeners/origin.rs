//! Finds the runs of a group of connections, before a token is presented.

use kernel::Run;
use shim::rundir::ProcessStat;

use super::connection_limits::ConnectionGroup;

/// Limit on the examined ancestors of a process.
const ABOVE: usize = 64;

/// Returns true if a group's connections belong to a run.
pub(super) fn is_of(group: ConnectionGroup, run: &Run) -> bool {
    match group {
        ConnectionGroup::User(uid) => run.worker_uid == Some(uid),
        ConnectionGroup::Run(_, id) => run.id == id,
        ConnectionGroup::Process(pid) => run.worker_pid.is_some_and(|worker| is_beneath(pid, worker)),
        ConnectionGroup::Anyone => false,
    }
}

/// Returns true if a process is the worker or its descendant. An orphaned process becomes a child of the worker's shim.
fn is_beneath(pid: i32, worker: i32) -> bool {
    let parent =
        |pid: i32| ProcessStat::of_process(pid).ok().map(|stat| stat.parent).filter(|parent| *parent > 1);
    let shim = parent(worker);
    std::iter::successors(Some(pid), |pid| parent(*pid))
        .take(ABOVE)
        .any(|above| above == worker || Some(above) == shim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_beneath_itself_and_its_parents_and_beneath_no_other() {
        let pid_of_test = std::process::id().cast_signed();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id().cast_signed();
        assert!(is_beneath(pid, pid_of_test) && is_beneath(pid, pid));
        assert!(!is_beneath(1, pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
