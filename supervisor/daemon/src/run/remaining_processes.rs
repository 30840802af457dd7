//! Ends the remains of a killed shim with proof, by cgroup or by pid namespace; otherwise finds them by the run's mark.
//!
//! No process is ended for its user alone: another root of the host, or a person, could have the same one.
//!
//! See decision 0028.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kernel::Run;
use shim::rundir::{PidRecord, RunDir, Straggler};
use shim::shortage::unless_short;

use super::run_state::RunState;
use super::survivors::{self, Mark};
use host::ended::{self, EndError, LIMIT};

/// Interval between two looks for processes whose end is not announced.
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RemainingProcesses {
    /// None, with proof.
    Nothing,
    /// Unknown. `found` names the processes that were found.
    Unknown {
        found: String,
        /// Process whose end is a reason to examine it again.
        watch: Option<i32>,
    },
    /// Processes that outlive SIGKILL.
    Unkillable(Vec<Straggler>),
}

/// Ends the remains of a killed shim if it can be proved, and otherwise looks for them. Blocks.
pub(super) fn prove(dir: &RunDir, pid: &PidRecord, mark: &Mark) -> Result<RemainingProcesses, String> {
    let spec = dir.spec().map_err(|e| base::failure::with_causes(&e))?;
    match ended::end(dir, pid) {
        Ok(()) => {}
        Err(EndError::Unkillable(left)) => return Ok(RemainingProcesses::Unkillable(left)),
        Err(error @ (EndError::Unread(_) | EndError::Failed { .. })) => return Err(error.in_words()),
    }
    if spec.cgroup.is_some() || pid.init.is_some() {
        return Ok(RemainingProcesses::Nothing);
    }
    if mark.uid.is_none() {
        return find_marked(mark);
    }
    // No other run of this host has that user, so without a process of it nothing is left.
    let marked_processes = kill_marked(mark, &BTreeSet::new())?;
    let marked = survivors::sure(&marked_processes);
    Ok(match (marked_processes.is_empty(), marked.is_empty()) {
        (true, _) => RemainingProcesses::Nothing,
        (false, true) => unknown(&marked_processes),
        (false, false) => RemainingProcesses::Unkillable(ended::stragglers(marked)),
    })
}

/// Finds the processes of a run, and leaves them as they are.
fn find_marked(mark: &Mark) -> Result<RemainingProcesses, String> {
    mark.find().map(|found| unknown(&found)).map_err(|e| format!("the processes cannot be listed: {e}"))
}

fn unknown(found: &[survivors::Survivor]) -> RemainingProcesses {
    RemainingProcesses::Unknown { found: survivors::named(found), watch: found.first().map(|one| one.pid) }
}

/// Returns the marks of a run from the board and its directory. Blocks.
///
/// # Errors
/// The directory cannot be read for now. Without its marks, processes of the run would be missed.
pub(super) fn mark_of(run: &Run, dir: Option<&RunDir>, root: &str) -> Result<Mark, String> {
    let unread = |e: &dyn std::error::Error| base::failure::with_causes(e);
    let started = dir.map(|dir| unless_short(dir.started())).transpose().map_err(|e| unread(&e))?;
    let session = started.flatten().flatten().map(|started| started.worker.pid).or(run.worker_pid);
    let run_state = dir.map(|dir| RunState::read(dir.path())).transpose().map_err(|e| unread(&e))?.flatten();
    let daemon_uid = rustix::process::geteuid();
    let user = match &run_state {
        Some(run_state) => Some(run_state.identity.map_or(daemon_uid.as_raw(), |(uid, _)| uid)),
        // Only root gives workers other users.
        None => (!daemon_uid.is_root()).then_some(daemon_uid.as_raw()),
    };
    let uid = run_state
        .filter(|run_state| run_state.exclusive_uid)
        .and_then(|run_state| run_state.identity)
        .map(|(uid, _)| uid);
    Ok(Mark { nonce: run.nonce.clone(), root: root.to_owned(), session, uid, user })
}

/// Ends all processes found of a run, because a person wants its task freed. Blocks.
///
/// # Errors
/// Names the processes with the mark that outlive SIGKILL.
pub(super) fn clear(mark: &Mark, groups: &BTreeSet<PathBuf>) -> Result<Cleared, String> {
    let survivors = kill_marked(mark, groups)?;
    if survivors::are_surely(&survivors) {
        return Err(format!("SIGKILL does not end {}", survivors::named(&survivors)));
    }
    Ok(if survivors.is_empty() { Cleared::Nothing } else { Cleared::Perhaps(survivors::named(&survivors)) })
}

/// Remains after all that surely belongs to the run has been ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cleared {
    /// None found.
    Nothing,
    /// Names of processes that may or may not belong to the run. They are not ended.
    Perhaps(String),
}

/// Kills the processes with the mark and in the cgroups until none is left. Returns those found last.
fn kill_marked(mark: &Mark, groups: &BTreeSet<PathBuf>) -> Result<Vec<survivors::Survivor>, String> {
    let until = Instant::now() + LIMIT;
    for group in groups {
        ended::empty_group(group).map_err(|e| e.in_words())?;
    }
    loop {
        let killed = mark.kill().map_err(|e| format!("the processes cannot be ended: {e}"))?;
        // Processes that may belong to others are not ended, so waiting for them is pointless.
        if !survivors::are_surely(&killed) || Instant::now() >= until {
            return Ok(killed);
        }
        // The kernel announces no end of a process that is not a child.
        std::thread::sleep(PAUSE);
    }
}
