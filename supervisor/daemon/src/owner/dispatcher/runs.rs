//! Handles the reports of runs: their progress, and failures to start.

use kernel::{Outcome, StopReason, Timestamp};
use shim::rundir::StartedRecord;

use super::super::backoff::Died;
use super::super::stopping::StopMode;
use super::{Action, Dispatcher, TaskKey};
use crate::run::environment::Needs;
use crate::run::fault::with_hint;
use crate::run::live::{Phase, ShimHandle};
use crate::run::report::{Ended, Report};
use base::exit::Code;
use base::failure::Failure;

impl Dispatcher {
    /// Handles a report of a run.
    pub(super) fn reported(&mut self, key: TaskKey, report: Report, now: Timestamp) -> Vec<Action> {
        match report {
            Report::Claimed(live) => {
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.live = Some(*live);
                }
                Vec::new()
            }
            Report::Launched(shim) => self.launched(&key, shim),
            Report::Started(record, begun) => self.started(&key, &record, begun, now),
            Report::Ended(ended) => self.ended(key, ended.as_deref(), now),
            Report::ClaimFailed(failure) => self.claim_failed(key, failure, now),
            Report::CheckingOut(files) => {
                let live = self.slots.get_mut(&key).and_then(|slot| slot.live.as_mut());
                if let Some(live) = live.filter(|live| live.phase == Phase::Starting) {
                    live.note = Some(files.to_string());
                }
                Vec::new()
            }
            Report::Shortage(why) => {
                self.backoff.shortage(why, now);
                Vec::new()
            }
            Report::Deferred(why) => {
                self.backoff.defer(key, why, now);
                Vec::new()
            }
            Report::StopFailed => {
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.stop_sent = None;
                }
                self.stop_if_asked(&key)
            }
            Report::EnvironmentFailed(environment, error) => {
                self.backoff.trip(environment, key, error, now);
                Vec::new()
            }
            Report::Delayed(phase, why) => self.delayed(&key, phase, why),
            Report::Unkillable(run, why) => self.unkillable(&key, run, why),
            Report::Finishing(known) => {
                self.finishing(&key);
                // The caller may have gone; then the reply is not needed.
                known.send(()).ok();
                Vec::new()
            }
        }
    }

    fn claim_failed(&mut self, key: TaskKey, failure: Failure, now: Timestamp) -> Vec<Action> {
        self.slots.remove(&key);
        self.backoff.tried(&key);
        self.started = self.started.saturating_sub(1);
        match failure.code {
            Code::TryAgain => self.backoff.pause(with_hint(&failure.message, failure.hint), now),
            // The task was claimed by another caller, and the next read does not show it; or it cannot start as it is,
            // such as one with a row that cannot be read.
            _ => self.backoff.defer(key, failure.to_string(), now),
        }
        // A free slot matters to every board.
        self.read_all()
    }

    fn started(
        &mut self,
        key: &TaskKey,
        record: &StartedRecord,
        started_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Vec<Action> {
        let slot = self.slots.get_mut(key);
        let needs = slot.as_ref().and_then(|slot| slot.claim.needs.clone());
        if let Some(live) = slot.and_then(|slot| slot.live.as_mut()) {
            live.pid = Some(record.worker.pid);
            live.sandbox = Some(record.report.summary());
            live.sandbox_lacks = !record.report.is_whole();
            live.lacks =
                record.report.lacking().map(|entry| format!("{} ({})", entry.layer, entry.state)).collect();
            if live.phase == Phase::Starting {
                live.phase = Phase::Running;
            }
        }
        let Some(begun) = started_at else { return Vec::new() };
        self.backoff.lives(key, now);
        let freed = self.backoff.started(key, needs.iter().flat_map(Needs::all), begun, now);
        if freed { self.read_all() } else { Vec::new() }
    }

    fn launched(&mut self, key: &TaskKey, shim: ShimHandle) -> Vec<Action> {
        let Some(slot) = self.slots.get_mut(key) else { return Vec::new() };
        if let Some(live) = &mut slot.live {
            if live.phase == Phase::Starting {
                // The workspace is there.
                live.note = None;
            }
            live.deadline_us = shim.deadline_us;
            live.workspace_path.clone_from(&shim.workspace_path);
            live.cgroup.clone_from(&shim.cgroup);
        }
        slot.shim = Some(shim);
        let prepared = slot.claim.preparing.take();
        // A stop may have been requested while its shim was being made.
        let mut actions = self.stop_if_asked(key);
        if prepared.is_some() {
            // Tasks of any board may wait for its repository.
            actions.extend(self.read_all());
        }
        actions
    }

    /// Stops a run again, or late, for any present reason: the board's, which a read finds, or the daemon's own.
    fn stop_if_asked(&mut self, key: &TaskKey) -> Vec<Action> {
        let mut actions: Vec<Action> = self.read(key.board.clone()).into_iter().collect();
        match self.stopping {
            Some(StopMode::Kill) => actions.extend(self.stop_run(key, StopReason::Kill)),
            Some(StopMode::Preempt) => actions.extend(self.stop_run(key, StopReason::Preempted)),
            Some(StopMode::Leave | StopMode::Drain) | None => {}
        }
        actions
    }

    fn ended(&mut self, key: TaskKey, ended: Option<&Ended>, now: Timestamp) -> Vec<Action> {
        let tenant = self.slots.remove(&key).and_then(|slot| slot.claim.tenant);
        let is_over = match ended.map(|ended| (ended, ended.finished.outcome)) {
            Some((
                ended,
                Outcome::Crashed | Outcome::Unreported | Outcome::OutOfMemory | Outcome::SpawnFailed,
            )) => {
                let died = Died { tenant, lived: ended.lived, at: ended.at.unwrap_or(now) };
                self.backoff.died(&key, &died, &self.config.dispatch, now)
            }
            Some((ended, _)) => self.backoff.ended_well(&key, tenant.as_ref(), ended.at.unwrap_or(now)),
            None => false,
        };
        self.backoff.tried(&key);
        if is_over {
            return self.read_all();
        }
        // A finished run changes its board, which triggers a read. A run that never began frees a slot without a
        // change, and a free slot matters to every board.
        if ended.is_some() && self.boards.len() == 1 {
            self.read(key.board).into_iter().collect()
        } else {
            self.read_all()
        }
    }
}
