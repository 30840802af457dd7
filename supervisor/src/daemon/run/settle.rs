//! The end of a run: proof that nothing of it is left, and what is reported to the board. Nothing else frees a claim.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use kernel::{Clock, EndCause, Ending, Run, Timestamp};
use shim::rundir::{Cause, ExitRecord, FailedStart, LockState, RunDir, RunDirError};
use shim::shortage::unless_short;

use super::note::Note;
use super::remains::{self, Cleared, Remains};
use super::survivors;
use crate::host::{cgroup, ended as leftover, job};
use crate::lanes::{EndingRules, read_ending};

/// What a run directory says once nobody holds its lock.
#[derive(Debug)]
pub(super) enum Proof {
    /// The run is over, and this is how it ended.
    Ended(Box<Ending>),
    /// The run is over before its command was started, and why; with what else is known of its end.
    NotStarted(FailedStart, Box<Ending>),
    /// Whether the processes of the run are gone cannot be known here.
    Unknown {
        /// Why, and what was found.
        why: String,
        /// A process whose end is worth another look.
        watch: Option<i32>,
    },
    /// The lock is held: the run lives.
    Alive,
}

/// What the daemon knows of a run beside its directory, which somebody may have taken away.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Where its directory is, or should be.
    pub(super) path: PathBuf,
    /// The root, as the environment of its workers names it.
    pub(super) root: String,
    pub(super) boot_id: String,
    /// The run as the board has it.
    pub(super) run: Run,
    /// Its cgroups, as far as they are known.
    pub(super) groups: BTreeSet<PathBuf>,
    /// Whether the board has of it what is known only when its directory was made.
    pub(super) was_prepared: bool,
    /// How its shim went, as far as this daemon knows.
    pub(super) shim: Shim,
}

/// What this daemon saw of a run's shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shim {
    /// Nothing: another daemon started it, if any did.
    Unseen,
    /// It was started, and has gone in another way than its own.
    Gone,
    /// It has ended by itself, after it had seen that nothing of the run was left.
    Finished,
}

/// Reads the proof of a run's end, and ends what a killed shim has left behind. Blocking.
///
/// The table is that of DESIGN section 5.
pub(super) fn prove(known: &mut Known) -> Result<Proof, String> {
    let text = |e: &dyn std::error::Error| crate::failure::with_causes(e);
    let dir = match RunDir::open(&known.path) {
        Ok(dir) => dir,
        Err(RunDirError::Open { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return without_directory(known);
        }
        Err(RunDirError::Copied { .. }) => return Ok(of_a_copy(known)),
        Err(error) => return Err(text(&error)),
    };
    let guard = match dir.lock_state().map_err(|e| text(&e))? {
        LockState::Held => return Ok(Proof::Alive),
        LockState::Free(guard) => guard,
    };
    let note = Note::read(&known.path).map_err(|e| text(&e))?;
    if let Some(record) = dir.exit().map_err(|e| text(&e))? {
        let boot = unless_short(dir.pid()).map_err(|e| text(&e))?.flatten().map(|pid| pid.boot_id);
        let same_boot = boot.is_none_or(|boot| boot == known.boot_id);
        let ended_at = ended_at(&record, same_boot, &kernel::SystemClock);
        let stdout = dir.stdout(&record).map_err(|e| text(&e))?;
        let mut ending = read_ending(&record, &stdout, &rules_of(note.as_ref()), ended_at);
        ending.failure_limit = note.as_ref().map_or(ending.failure_limit, |note| note.failure_limit);
        ending.reviewer = note.as_ref().and_then(|note| note.reviewer.clone());
        ending.denied = denied(&dir, &record, &ending.cause);
        return Ok(match &record.cause {
            Cause::SpawnFailed(failed) => Proof::NotStarted(failed.clone(), Box::new(ending)),
            _ => ended(ending),
        });
    }
    // A record that cannot be read says nothing, now or later: a person has to look.
    let unreadable = |e: RunDirError| {
        let why = text(&e);
        if !is_damage(&e) {
            return Err(why);
        }
        let mark = remains::mark_of(&known.run, Some(&dir), &known.root)?;
        let found = mark.find().map_err(|e| format!("the processes cannot be listed: {e}"))?;
        let watch = found.first().map(|survivor| survivor.pid);
        let why = format!("the shim was killed, and its record is damaged: failed to {why}");
        Ok(Proof::Unknown { why: survivors_unknown(&known.run, &why, &survivors::named(&found)), watch })
    };
    let pid = match dir.pid() {
        Ok(pid) => pid,
        Err(e) => return unreadable(e),
    };
    let Some(pid) = pid else {
        // A shim that is only now coming up will find this and run nothing.
        dir.revoke(guard).map_err(|e| text(&e))?;
        return Ok(ended(Ending::new(EndCause::NeverStarted)));
    };
    if pid.boot_id != known.boot_id {
        return Ok(ended(Ending::new(EndCause::LostReboot)));
    }
    let mark = remains::mark_of(&known.run, Some(&dir), &known.root)?;
    Ok(match remains::prove(&dir, &pid, &mark)? {
        Remains::Nothing => lost(note.as_ref()),
        Remains::Unknown { found, watch } => {
            Proof::Unknown { why: survivors_unknown(&known.run, "the shim was killed", &found), watch }
        }
    })
}

/// The proof where the directory of a run is a copy: the run is another root's, which alone may end it.
fn of_a_copy(known: &Known) -> Proof {
    if known.run.boot_id.as_ref().is_some_and(|boot| *boot != known.boot_id) {
        return ended(Ending::new(EndCause::LostReboot));
    }
    let task = &known.run.task_id;
    let why = format!(
        "its run directory {} is a copy, so its worker is that of the root which was copied. Nothing of it is touched; \
         `supervisor reclaim {task}` frees the task on this board alone",
        known.path.display()
    );
    Proof::Unknown { why, watch: None }
}

/// The proof where a run has no directory.
///
/// The directory of a run is made before its shim, and is removed when the board knows the end. So one that is not there
/// was never made, or somebody has taken it away: then the run is over only if that is seen by other means.
fn without_directory(known: &mut Known) -> Result<Proof, String> {
    if known.run.boot_id.as_ref().is_some_and(|boot| *boot != known.boot_id) {
        return Ok(ended(Ending::new(EndCause::LostReboot)));
    }
    let mark = remains::mark_of(&known.run, None, &known.root)?;
    let found = mark.find().map_err(|e| format!("the processes cannot be listed: {e}"))?;
    known.groups.extend(survivors::groups(&found));
    let populated =
        |group: &PathBuf| cgroup::populated(group).map_err(|e| format!("{}: {e}", group.display()));
    let mut is_populated = false;
    for group in &known.groups {
        is_populated |= populated(group)?;
    }
    let was_launched = known.shim != Shim::Unseen || known.was_prepared;
    if found.is_empty() && !is_populated {
        if known.shim == Shim::Finished || (was_launched && !known.groups.is_empty()) {
            return Ok(lost(None));
        }
        if !was_launched {
            return Ok(ended(Ending::new(EndCause::NeverStarted)));
        }
    }
    let why = format!("its run directory {} is gone", known.path.display());
    let watch = found.first().map(|survivor| survivor.pid);
    Ok(Proof::Unknown { why: survivors_unknown(&known.run, &why, &survivors::named(&found)), watch })
}

/// Ends all that can be found of a run, because a person wants its claim freed. Blocking.
///
/// # Errors
/// Names what is still there.
pub(super) fn clear(known: &Known) -> Result<Cleared, String> {
    let dir = match RunDir::open(&known.path) {
        // Another root's.
        Err(RunDirError::Copied { .. }) => return Ok(Cleared::Nothing),
        opened => unless_short(opened).map_err(|e| crate::failure::with_causes(&e))?,
    };
    let mark = remains::mark_of(&known.run, dir.as_ref(), &known.root)?;
    let own = dir.as_ref().map(leftover::group_of).transpose()?.flatten();
    let groups = known.groups.iter().cloned().chain(own).collect();
    remains::clear(&mark, &groups)
}

fn survivors_unknown(run: &Run, why: &str, found: &str) -> String {
    let task = &run.task_id;
    if found.is_empty() {
        return format!(
            "survivors unknown: {why}, and nothing proves that the worker's processes are gone. None with the run's \
             mark is left, but one that has shed it cannot be seen; `supervisor reclaim {task}` frees the task when \
             you are sure"
        );
    }
    format!(
        "survivors unknown: {why}. Still there: {found}; `supervisor reclaim {task}` ends them and frees the task"
    )
}

/// Whether a record is gone or makes no sense, and not only unreadable for now.
fn is_damage(error: &RunDirError) -> bool {
    match error {
        RunDirError::Parse { .. } => true,
        RunDirError::Read { source, .. } => source.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

fn ended(ending: Ending) -> Proof {
    Proof::Ended(Box::new(ending))
}

fn lost(note: Option<&Note>) -> Proof {
    let mut ending = Ending::new(EndCause::ShimKilled);
    ending.failure_limit = note.map_or(ending.failure_limit, |note| note.failure_limit);
    ended(ending)
}

/// When a run ended, by the clock of the host as it is set now: the time since boot tells, and after another boot the
/// clock as it was set then.
fn ended_at(record: &ExitRecord, same_boot: bool, clock: &impl Clock) -> Timestamp {
    let now = clock.now();
    if same_boot {
        let ago = clock.boottime().saturating_sub(Duration::from_micros(record.ended_at_us));
        let ago = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
        return Timestamp::from_micros(now.as_micros().saturating_sub(ago));
    }
    record.ended_at_wall_us.map_or(now, Timestamp::from_micros)
}

/// How the lane of a run reads its ending; as a lane does that says nothing where the run never got that far.
fn rules_of(note: Option<&Note>) -> EndingRules {
    note.map(|note| note.rules.clone()).unwrap_or_default()
}

/// What the sandbox denied a run that failed by itself.
fn denied(dir: &RunDir, record: &ExitRecord, cause: &EndCause) -> Option<kernel::Denied> {
    let failed = match (&record.cause, cause) {
        (Cause::SpawnFailed(failed), _) => failed.step == shim::rundir::Step::Exec,
        (Cause::Exited, EndCause::Exited { code }) => *code != 0,
        (Cause::Exited, EndCause::Signaled { .. } | EndCause::OutOfMemory) => true,
        (Cause::Exited | Cause::Deadline | Cause::Stopped { .. }, _) => false,
    };
    if failed { job::denied(&dir.spec().ok()?) } else { None }
}

#[cfg(test)]
mod tests {
    use kernel::ManualClock;

    use super::*;

    fn record(ended_at_us: u64, ended_at_wall_us: Option<i64>) -> ExitRecord {
        ExitRecord { code: Some(0), ended_at_wall_us, ..ExitRecord::of(Cause::Exited, ended_at_us) }
    }

    #[test]
    fn the_end_of_a_run_is_that_of_its_record_also_where_the_clock_was_set_meanwhile() {
        let clock = ManualClock::new(Timestamp::from_secs(1_000_000));
        let end = clock.boottime();
        let record = record(u64::try_from(end.as_micros()).unwrap(), Some(1_000_000_000_000));
        clock.advance(Duration::from_secs(100));
        assert_eq!(ended_at(&record, true, &clock), Timestamp::from_secs(1_000_000));
        clock.set(Timestamp::from_secs(500_100));
        assert_eq!(ended_at(&record, true, &clock), Timestamp::from_secs(500_000));
    }

    #[test]
    fn after_another_boot_the_clock_of_then_counts_and_a_record_without_it_ended_now() {
        let clock = ManualClock::new(Timestamp::from_secs(2_000_000));
        clock.reboot("boot-2");
        assert_eq!(ended_at(&record(7, Some(1_000_000)), false, &clock), Timestamp::from_secs(1));
        assert_eq!(ended_at(&record(7, None), false, &clock), Timestamp::from_secs(2_000_000));
    }
}
