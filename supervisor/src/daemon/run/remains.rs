//! What a shim that was killed has left: ended, with proof, by cgroup or by pid namespace; else found by its mark.
//!
//! Nothing is ever ended for its user alone: two roots of a host, or a person, could have the same one.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kernel::Run;
use shim::rundir::{PidRecord, RunDir, Straggler};
use shim::shortage::unless_short;

use super::note::Note;
use super::survivors::{self, Mark};
use crate::host::ended::{self, EndError, LIMIT};

/// Between two looks for processes whose end nothing announces.
const PAUSE: Duration = Duration::from_millis(5);

/// What is left of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum Remains {
    /// Nothing: that is proved.
    Nothing,
    /// Nobody can tell: the processes that were found, in words, and one of them to wait for.
    Unknown {
        found: String,
        /// A process whose end is worth another look.
        watch: Option<i32>,
    },
    /// Processes that SIGKILL does not end.
    Unkillable(Vec<Straggler>),
}

/// Ends what a killed shim has left where that can be proved, and else looks for it. Blocking.
pub(super) fn prove(dir: &RunDir, pid: &PidRecord, mark: &Mark) -> Result<Remains, String> {
    let spec = dir.spec().map_err(|e| crate::failure::with_causes(&e))?;
    match ended::end(dir, pid) {
        Ok(()) => {}
        Err(EndError::Unkillable(left)) => return Ok(Remains::Unkillable(left)),
        Err(error @ (EndError::Unread(_) | EndError::Failed { .. })) => return Err(error.in_words()),
    }
    if spec.cgroup.is_some() || pid.init.is_some() {
        return Ok(Remains::Nothing);
    }
    if mark.uid.is_none() {
        return look(mark);
    }
    // No other run of this host has that user, so that where nothing has it nothing is left.
    let found = kill_marked(mark, &BTreeSet::new())?;
    let marked = survivors::sure(&found);
    Ok(match (found.is_empty(), marked.is_empty()) {
        (true, _) => Remains::Nothing,
        (false, true) => unknown(&found),
        (false, false) => Remains::Unkillable(ended::stragglers(marked)),
    })
}

/// Looks for the processes of a run, and leaves them as they are.
fn look(mark: &Mark) -> Result<Remains, String> {
    mark.find().map(|found| unknown(&found)).map_err(|e| format!("the processes cannot be listed: {e}"))
}

fn unknown(found: &[survivors::Survivor]) -> Remains {
    Remains::Unknown { found: survivors::named(found), watch: found.first().map(|one| one.pid) }
}

/// The marks of a run that the board and its directory know. Blocking.
///
/// # Errors
/// The directory cannot be read for now. Without what it knows, processes of the run would go unseen.
pub(super) fn mark_of(run: &Run, dir: Option<&RunDir>, root: &str) -> Result<Mark, String> {
    let unread = |e: &dyn std::error::Error| crate::failure::with_causes(e);
    let started = dir.map(|dir| unless_short(dir.started())).transpose().map_err(|e| unread(&e))?;
    let session = started.flatten().flatten().map(|started| started.worker.pid).or(run.worker_pid);
    let note = dir.map(|dir| Note::read(dir.path())).transpose().map_err(|e| unread(&e))?.flatten();
    let own = rustix::process::geteuid();
    let user = match &note {
        Some(note) => Some(note.identity.map_or(own.as_raw(), |(uid, _)| uid)),
        // Only root gives workers other users.
        None => (!own.is_root()).then_some(own.as_raw()),
    };
    let uid = note.filter(|note| note.exclusive_uid).and_then(|note| note.identity).map(|(uid, _)| uid);
    Ok(Mark { nonce: run.nonce.clone(), root: root.to_owned(), session, uid, user })
}

/// Ends all that can be found of a run, because a person wants its claim freed. Blocking.
///
/// # Errors
/// Names what carries the mark and outlives SIGKILL.
pub(super) fn clear(mark: &Mark, groups: &BTreeSet<PathBuf>) -> Result<Cleared, String> {
    let left = kill_marked(mark, groups)?;
    if survivors::are_surely(&left) {
        return Err(format!("SIGKILL does not end {}", survivors::named(&left)));
    }
    Ok(if left.is_empty() { Cleared::Nothing } else { Cleared::Perhaps(survivors::named(&left)) })
}

/// What is left when all that is surely a run's has been ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cleared {
    /// Nothing that can be found.
    Nothing,
    /// Processes that may be the run's or another's, in words. They are not ended.
    Perhaps(String),
}

/// Kills what carries the mark, and what is in the groups, until nothing does. Returns what was found last.
fn kill_marked(mark: &Mark, groups: &BTreeSet<PathBuf>) -> Result<Vec<survivors::Survivor>, String> {
    let until = Instant::now() + LIMIT;
    for group in groups {
        ended::empty_group(group).map_err(|e| e.in_words())?;
    }
    loop {
        let found = mark.kill().map_err(|e| format!("the processes cannot be ended: {e}"))?;
        // What is not surely the run's is not ended, however long this looks.
        if !survivors::are_surely(&found) || Instant::now() >= until {
            return Ok(found);
        }
        // Nothing announces the end of processes that are not children.
        std::thread::sleep(PAUSE);
    }
}
