//! Traces of a run on this host: its directory, its cgroups, and the processes that carry its mark.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use kernel::{Clock, EndCause, Timestamp};
use shim::rundir::{self, Cause, ExitRecord, LockGuard, LockState, PidRecord, RunDir, RunDirError};
use shim::shortage::unless_short;

use super::proof::{self, Directory, Marked, Proof, RunFacts, Traces};
use super::remaining_processes::{self, Cleared, RemainingProcesses};
use super::run_state::RunState;
use super::survivors::{self, Mark};
use host::{cgroup, ended as leftover, job};
use setup::lanes::{EndingRules, cause_of_requested_end, read_ending};

/// Examines a run, and ends the remains of a killed shim. Blocks.
pub(super) fn prove(facts: &mut RunFacts) -> Result<Proof, String> {
    let mut traces = OnHost { facts: facts.clone(), dir: None, guard: None, pid: None };
    proof::judge(facts, &mut traces)
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
pub(super) fn clear(facts: &RunFacts, records: Records) -> Result<Cleared, String> {
    let dir = match (RunDir::open(&facts.path), records) {
        // Belongs to another root.
        (Err(RunDirError::Copied { .. }), _) => return Ok(Cleared::Nothing),
        (opened, Records::Needed) => unless_short(opened).map_err(|e| text(&e))?,
        (opened, Records::AsFarAsReadable) => opened.ok(),
    };
    let mark = |dir: Option<&RunDir>| remaining_processes::mark_of(&facts.run, dir, &facts.root);
    let recorded_group = dir.as_ref().map(leftover::group_of).transpose();
    let (mark, recorded_group) = match records {
        Records::Needed => (mark(dir.as_ref())?, recorded_group?.flatten()),
        // The board alone knows the nonce of the claim, which all processes of the run carry.
        Records::AsFarAsReadable => {
            (mark(dir.as_ref()).or_else(|_| mark(None))?, recorded_group.ok().flatten().flatten())
        }
    };
    let groups = facts.groups.iter().cloned().chain(recorded_group).collect();
    remaining_processes::clear(&mark, &groups)
}

/// Traces of a run on this host.
struct OnHost {
    facts: RunFacts,
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
        remaining_processes::mark_of(&self.facts.run, self.dir.as_ref(), &self.facts.root)
    }

    /// Reads the ending of a run from its shim's record.
    fn exited(
        &self,
        dir: &RunDir,
        record: &ExitRecord,
        run_state: Option<&RunState>,
    ) -> Result<Directory, String> {
        let boot = unless_short(dir.pid()).map_err(|e| text(&e))?.flatten().map(|pid| pid.boot_id);
        let same_boot = boot.is_none_or(|boot| boot == self.facts.boot_id);
        let ended_at = ended_at(record, same_boot, &kernel::SystemClock);
        let stdout = dir.stdout(record).map_err(|e| text(&e))?;
        let mut ending = read_ending(record, &stdout, &rules_of(run_state), &self.facts.contact, ended_at);
        ending.failure_limit = run_state.map_or(ending.failure_limit, |run_state| run_state.failure_limit);
        ending.reviewer = run_state.and_then(|run_state| run_state.reviewer.clone());
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
        let dir = match RunDir::open(&self.facts.path) {
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
        let run_state = RunState::read(&self.facts.path).map_err(|e| text(&e))?;
        if let Some(record) = dir.exit().map_err(|e| text(&e))? {
            return self.exited(&dir, &record, run_state.as_ref());
        }
        match dir.pid() {
            Ok(None) => Ok(Directory::Unnamed),
            Ok(Some(pid)) => {
                let boot_id = pid.boot_id.clone();
                self.pid = Some(pid);
                let overdue = unless_short(dir.overdue()).map_err(|e| text(&e))?.flatten();
                let requested = overdue.and_then(|record| cause_of_requested_end(&record.cause));
                Ok(Directory::Killed {
                    boot_id,
                    failure_limit: run_state.map(|run_state| run_state.failure_limit),
                    requested,
                })
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

    fn remaining_processes(&mut self) -> Result<RemainingProcesses, String> {
        match (&self.dir, &self.pid) {
            (Some(dir), Some(pid)) => remaining_processes::prove(dir, pid, &self.mark()?),
            _ => Err("it is not recorded which process the shim was".to_owned()),
        }
    }

    fn marked(&mut self) -> Result<Marked, String> {
        let marked = self.mark()?.find().map_err(|e| format!("the processes cannot be listed: {e}"))?;
        let watch = marked.first().map(|survivor| survivor.pid);
        Ok(Marked { named: survivors::named(&marked), watch, groups: survivors::groups(&marked) })
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
fn rules_of(run_state: Option<&RunState>) -> EndingRules {
    run_state.map(|run_state| run_state.rules.clone()).unwrap_or_default()
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
        ExitRecord { code: Some(0), ended_at_wall_us, ..ExitRecord::with_cause(Cause::Exited, ended_at_us) }
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
