//! Traces of a run on this host: its directory, its cgroups, and the processes that carry its mark.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use kernel::{Clock, EndCause, Timestamp};
use shim::rundir::{self, Cause, ExitRecord, LockGuard, LockState, PidRecord, RunDir, RunDirError};
use shim::shortage::unless_short;

use super::note::Note;
use super::remains::{self, Cleared, Remains};
use super::settle::{self, Directory, Known, Marked, Proof, Traces};
use super::survivors::{self, Mark};
use host::{cgroup, ended as leftover, job};
use setup::lanes::{EndingRules, read_ending, told_to_end};

/// Examines a run, and ends the remains of a killed shim. Blocks.
pub(super) fn prove(known: &mut Known) -> Result<Proof, String> {
    let mut traces = OnHost { known: known.clone(), dir: None, guard: None, pid: None };
    settle::judge(known, &mut traces)
}

/// Use of the records of a run that a person wants freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Records {
    /// Required, because they name further ways to find its processes. The caller retries while they cannot be read.
    Needed,
    /// Unreadable records are ignored, with the person's knowledge.
    AsFarAsReadable,
}

/// Ends all processes found of a run, because a person wants its task freed. Blocks.
///
/// # Errors
/// Names the remaining processes.
pub(super) fn clear(known: &Known, records: Records) -> Result<Cleared, String> {
    let dir = match (RunDir::open(&known.path), records) {
        // Belongs to another root.
        (Err(RunDirError::Copied { .. }), _) => return Ok(Cleared::Nothing),
        (opened, Records::Needed) => unless_short(opened).map_err(|e| text(&e))?,
        (opened, Records::AsFarAsReadable) => opened.ok(),
    };
    let mark = |dir: Option<&RunDir>| remains::mark_of(&known.run, dir, &known.root);
    let own = dir.as_ref().map(leftover::group_of).transpose();
    let (mark, own) = match records {
        Records::Needed => (mark(dir.as_ref())?, own?.flatten()),
        // The board alone knows the nonce of the claim, which all processes of the run carry.
        Records::AsFarAsReadable => {
            (mark(dir.as_ref()).or_else(|_| mark(None))?, own.ok().flatten().flatten())
        }
    };
    let groups = known.groups.iter().cloned().chain(own).collect();
    remains::clear(&mark, &groups)
}

/// Traces of a run on this host.
struct OnHost {
    known: Known,
    dir: Option<RunDir>,
    /// Lock of the directory, held during the examination.
    guard: Option<LockGuard>,
    pid: Option<PidRecord>,
}

fn text(error: &dyn std::error::Error) -> String {
    base::failure::with_causes(error)
}

impl OnHost {
    fn mark(&self) -> Result<Mark, String> {
        remains::mark_of(&self.known.run, self.dir.as_ref(), &self.known.root)
    }

    /// Reads the ending of a run from its shim's record.
    fn exited(&self, dir: &RunDir, record: &ExitRecord, note: Option<&Note>) -> Result<Directory, String> {
        let boot = unless_short(dir.pid()).map_err(|e| text(&e))?.flatten().map(|pid| pid.boot_id);
        let same_boot = boot.is_none_or(|boot| boot == self.known.boot_id);
        let ended_at = ended_at(record, same_boot, &kernel::SystemClock);
        let stdout = dir.stdout(record).map_err(|e| text(&e))?;
        let mut ending = read_ending(record, &stdout, &rules_of(note), &self.known.contact, ended_at);
        ending.failure_limit = note.map_or(ending.failure_limit, |note| note.failure_limit);
        ending.reviewer = note.and_then(|note| note.reviewer.clone());
        ending.denied = denied(dir, record, &ending.cause);
        ending.lived = record.lived();
        let failed = match &record.cause {
            Cause::SpawnFailed(failed) => Some(failed.clone()),
            Cause::Exited | Cause::Deadline | Cause::Stopped { .. } => None,
        };
        Ok(Directory::Exited(failed, Box::new(ending)))
    }
}

impl Traces for OnHost {
    fn directory(&mut self) -> Result<Directory, String> {
        let dir = match RunDir::open(&self.known.path) {
            Ok(dir) => dir,
            Err(RunDirError::Open { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(Directory::Absent);
            }
            Err(RunDirError::Copied { .. }) => return Ok(Directory::Copied),
            Err(error) => return Err(text(&error)),
        };
        self.dir = Some(dir.clone());
        match dir.lock_state().map_err(|e| text(&e))? {
            LockState::Held => return Ok(Directory::Held),
            LockState::Free(guard) => self.guard = Some(guard),
        }
        // Checked first, because a later release may have other forms of the records below.
        let version = unless_short(dir.version()).map_err(|e| text(&e))?;
        if let Some(version) = version.filter(|version| !rundir::is_known(*version)) {
            return Ok(Directory::Later(version));
        }
        let note = Note::read(&self.known.path).map_err(|e| text(&e))?;
        if let Some(record) = dir.exit().map_err(|e| text(&e))? {
            return self.exited(&dir, &record, note.as_ref());
        }
        match dir.pid() {
            Ok(None) => Ok(Directory::Unnamed),
            Ok(Some(pid)) => {
                let boot_id = pid.boot_id.clone();
                self.pid = Some(pid);
                let overdue = unless_short(dir.overdue()).map_err(|e| text(&e))?.flatten();
                let told = overdue.and_then(|record| told_to_end(&record.cause));
                Ok(Directory::Killed { boot_id, failure_limit: note.map(|note| note.failure_limit), told })
            }
            Err(error) if is_damage(&error) => Ok(Directory::Damaged(text(&error))),
            Err(error) => Err(text(&error)),
        }
    }

    fn revoke(&mut self) -> Result<(), String> {
        match (&self.dir, self.guard.take()) {
            (Some(dir), Some(guard)) => dir.revoke(guard).map_err(|e| text(&e)),
            _ => Err("the lock of the run directory is not ours".to_owned()),
        }
    }

    fn remains(&mut self) -> Result<Remains, String> {
        match (&self.dir, &self.pid) {
            (Some(dir), Some(pid)) => remains::prove(dir, pid, &self.mark()?),
            _ => Err("it is not recorded which process the shim was".to_owned()),
        }
    }

    fn marked(&mut self) -> Result<Marked, String> {
        let found = self.mark()?.find().map_err(|e| format!("the processes cannot be listed: {e}"))?;
        let watch = found.first().map(|survivor| survivor.pid);
        Ok(Marked { named: survivors::named(&found), watch, groups: survivors::groups(&found) })
    }

    fn is_populated(&mut self, groups: &BTreeSet<PathBuf>) -> Result<bool, String> {
        let mut is_populated = false;
        for group in groups {
            is_populated |= cgroup::populated(group).map_err(|e| format!("{}: {e}", group.display()))?;
        }
        Ok(is_populated)
    }
}

/// Returns true if a record is missing or invalid, and not merely unreadable for now.
fn is_damage(error: &RunDirError) -> bool {
    match error {
        RunDirError::Parse { .. } => true,
        RunDirError::Read { source, .. } => source.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

/// Returns the end of a run by the present clock of the host. Within the same boot it follows from the time since boot;
/// otherwise it is the recorded time of the clock.
fn ended_at(record: &ExitRecord, same_boot: bool, clock: &impl Clock) -> Timestamp {
    let now = clock.now();
    if same_boot {
        let ago = clock.boottime().saturating_sub(Duration::from_micros(record.ended_at_us));
        return now.before(ago);
    }
    record.ended_at_wall_us.map_or(now, Timestamp::from_micros)
}

/// Returns the rules by which the run's lane reads its ending; the default if the run did not get that far.
fn rules_of(note: Option<&Note>) -> EndingRules {
    note.map(|note| note.rules.clone()).unwrap_or_default()
}

/// Returns the sandbox denial of a run that failed by itself.
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
