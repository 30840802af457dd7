//! Traces of a run on a simulated host, for the table of proofs that judges real ones.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kernel::{Clock as _, Ending, ManualClock, RunId};
use shim::rundir::{Cause, ExitRecord, RunDir};

use super::host::{Host, HostRun, WorkerLife};
use crate::run::proof::{Directory, Marked, Traces};
use crate::run::remaining_processes::RemainingProcesses;
use setup::lanes::{Contact, EndingRules, read_ending};

/// Traces of one run, as a daemon sees them.
pub(super) struct HostTraces<'a> {
    pub(super) host: &'a mut Host,
    pub(super) run: RunId,
    pub(super) clock: &'a ManualClock,
    /// A directory without output.
    pub(super) silent: &'a RunDir,
    /// Record to read instead of the run's own: a planted fault.
    pub(super) instead: Option<ExitRecord>,
}

/// Returns the cgroup of a run.
pub(super) fn group_of(run: RunId) -> PathBuf {
    format!("/simulated/cgroup/{run}").into()
}

impl HostTraces<'_> {
    fn of_run(&self) -> Option<&HostRun> {
        self.host.get(self.run)
    }

    /// Ends the processes in its cgroup, or with its mark.
    pub(super) fn kill(&mut self) {
        if let Some(run) = self.host.get_mut(self.run).filter(|run| run.worker == WorkerLife::Alive) {
            run.worker = WorkerLife::Gone;
        }
    }

    fn ending(&self, record: &ExitRecord) -> Ending {
        let stdout = self.silent.stdout(record).unwrap();
        read_ending(record, &stdout, &EndingRules::default(), &Contact::default(), self.clock.now())
    }
}

impl Traces for HostTraces<'_> {
    fn directory(&mut self) -> Result<Directory, String> {
        let Some(run) = self.of_run() else { return Ok(Directory::Absent) };
        let Some(records) = &run.records else { return Ok(Directory::Absent) };
        if run.is_locked() {
            return Ok(Directory::Held);
        }
        if let Some(record) = self.instead.as_ref().or(records.exit.as_ref()) {
            let failed = match &record.cause {
                Cause::SpawnFailed(failed) => Some(failed.clone()),
                Cause::Exited | Cause::Deadline | Cause::Stopped { .. } => None,
            };
            return Ok(Directory::Exited(failed, Box::new(self.ending(record))));
        }
        if records.is_damaged {
            return Ok(Directory::Damaged("read a record of the simulation".to_owned()));
        }
        Ok(match &records.named {
            None => Directory::Unnamed,
            Some(boot_id) => {
                Directory::Killed { boot_id: boot_id.clone(), failure_limit: None, requested: None }
            }
        })
    }

    fn revoke(&mut self) -> Result<(), String> {
        if let Some(records) = self.host.get_mut(self.run).and_then(|run| run.records.as_mut()) {
            records.is_revoked = true;
        }
        Ok(())
    }

    fn remaining_processes(&mut self) -> Result<RemainingProcesses, String> {
        if self.of_run().is_some_and(|run| run.has_cgroup) {
            self.kill();
            return Ok(RemainingProcesses::Nothing);
        }
        let Marked { named, watch, .. } = self.marked()?;
        Ok(RemainingProcesses::Unknown { found: named, watch })
    }

    fn marked(&mut self) -> Result<Marked, String> {
        let found = self.of_run().filter(|run| run.worker == WorkerLife::Alive && run.is_marked);
        Ok(found.map_or_else(Marked::default, |run| Marked {
            named: format!("{} (worker)", run.pid()),
            watch: Some(run.pid()),
            groups: BTreeSet::new(),
        }))
    }

    fn is_populated(&mut self, groups: &BTreeSet<PathBuf>) -> Result<bool, String> {
        let run = self.of_run().filter(|run| run.worker == WorkerLife::Alive && run.has_cgroup);
        Ok(run.is_some_and(|run| groups.contains(&group_of(run.run))))
    }
}
