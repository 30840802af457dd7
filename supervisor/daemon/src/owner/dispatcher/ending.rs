//! Ends runs, stops the daemon, and decides when the loop has nothing left to wait for.

use std::time::Duration;

use kernel::{BoardName, RunId, StopReason, Timestamp};
use shim::rundir::StopRequest;

use super::super::action::Action;
use super::super::admission::Weight;
use super::super::mode::DaemonMode;
use super::super::stopping::{RemainingRun, StopMode, StopPlan, shim_reason, urgency};
use super::{Dispatcher, ReadState, Slot, TaskKey};
use crate::run::live::{LiveRun, Phase};

impl Dispatcher {
    /// Records that the end of a run is delayed.
    pub(super) fn delayed(&mut self, key: &TaskKey, phase: Phase, why: String) -> Vec<Action> {
        let Some(slot) = self.slots.get_mut(key) else { return Vec::new() };
        if let Some(live) = &mut slot.live {
            live.phase = phase;
            live.note = Some(why);
        }
        if !phase.is_out_of_reach() || slot.claim.weight == Weight::PlaceAlone {
            return Vec::new();
        }
        // No process of the run is known to work, so it takes no slot; its directory stays taken.
        slot.claim.weight = Weight::PlaceAlone;
        self.read_all()
    }

    /// Records that SIGKILL does not end the processes of a run, unless the run has ended meanwhile.
    pub(super) fn unkillable(&mut self, key: &TaskKey, run: RunId, why: String) -> Vec<Action> {
        let slot = self.slots.get(key).filter(|slot| !slot.is_finishing);
        let live = slot.and_then(|slot| slot.live.as_ref());
        // Its shim may have ended meanwhile; the state of its remains is newer than this report.
        if live.is_none_or(|live| live.run != run || matches!(live.phase, Phase::Settling | Phase::Unknown)) {
            return Vec::new();
        }
        self.delayed(key, Phase::Unkillable, why)
    }

    /// Records that nothing of a run is left and its end is being recorded. Until then this daemon keeps the lock of
    /// its root, whatever delayed the end before.
    pub(super) fn finishing(&mut self, key: &TaskKey) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        slot.is_finishing = true;
        if let Some(live) = &mut slot.live {
            live.phase = Phase::Ending;
            live.note = None;
        }
    }

    /// Asks a shim to end its run, unless it has had an equally urgent request.
    pub(super) fn stop_run(&mut self, key: &TaskKey, reason: StopReason) -> Option<Action> {
        let worker = &self.config.worker;
        let slot = self.slots.get_mut(key)?;
        if slot.is(Phase::Settling) || slot.is_out_of_reach() {
            // Its shim has ended, or already does all that it can.
            return None;
        }
        let Some(shim) = slot.shim.as_ref() else { return Some(Action::GiveUp(key.clone())) };
        if slot.stop_sent.is_some_and(|sent| urgency(sent) >= urgency(reason)) {
            return None;
        }
        let shim = shim.clone();
        slot.stop_sent = Some(reason);
        if let Some(live) = &mut slot.live {
            live.phase = Phase::Ending;
        }
        let quiet =
            if reason == StopReason::Verdict { worker.verdict_grace.duration() } else { Duration::ZERO };
        let grace = if reason == StopReason::Kill { Duration::ZERO } else { worker.grace() };
        let request = StopRequest {
            version: shim::rundir::VERSION,
            reason: shim_reason(reason),
            quiet_ms: u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX),
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        Some(Action::Stop(key.clone(), shim, request))
    }

    /// Stops the daemon in this mode from now on.
    pub(super) fn stop(&mut self, mode: StopMode, now: Timestamp) -> Vec<Action> {
        let before = self.stopping.replace(mode);
        let reason = match mode {
            StopMode::Leave => return vec![Action::Finish],
            StopMode::Drain if before.is_some() => return Vec::new(),
            StopMode::Drain => {
                self.drain_until = Some(now.after(self.config.worker.drain.duration()));
                return vec![Action::LimitDrain];
            }
            StopMode::Preempt => StopReason::Preempted,
            StopMode::Kill => StopReason::Kill,
        };
        let keys: Vec<TaskKey> = self.slots.keys().cloned().collect();
        keys.iter().filter_map(|key| self.stop_run(key, reason)).collect()
    }

    /// Returns the runs that may still have live processes, if this daemon ends all its workers.
    pub(crate) fn survivors(&self) -> Vec<(BoardName, RunId)> {
        if !self.stopping.is_some_and(StopMode::ends_workers) {
            return Vec::new();
        }
        let unknown = self.slots.iter().filter(|(_, slot)| slot.is(Phase::Unknown));
        unknown.filter_map(|(key, slot)| Some((key.board.clone(), slot.live.as_ref()?.run))).collect()
    }

    /// Returns the reason for the end of all runs, if this daemon ends all its workers.
    pub(crate) fn ends_all(&self) -> Option<shim::rundir::StopReason> {
        match self.stopping? {
            StopMode::Leave => None,
            StopMode::Drain | StopMode::Preempt => Some(shim_reason(StopReason::Preempted)),
            StopMode::Kill => Some(shim_reason(StopReason::Kill)),
        }
    }

    /// Describes the stop in progress, for the caller who asked for one.
    pub(super) fn stop_plan(&self, asked: StopMode) -> StopPlan {
        let mode = self.stopping.unwrap_or(asked);
        let unendable: Vec<&LiveRun> = self
            .slots
            .values()
            .filter(|slot| slot.is_out_of_reach())
            .filter_map(|slot| slot.live.as_ref())
            .collect();
        let ending = self.slots.values().filter(|slot| slot.stop_sent.is_some()).count();
        StopPlan {
            pid: std::process::id(),
            mode,
            asked,
            workers: self.slots.len() - unendable.len(),
            ending,
            until: self.drain_until.filter(|_| mode == StopMode::Drain),
            grace_seconds: self.config.worker.grace().as_secs(),
            left: unendable.into_iter().map(RemainingRun::from_live).collect(),
            unserved: Vec::new(),
        }
    }

    /// Describes the stop in progress for a person at the daemon's terminal.
    pub(super) fn stop_plan_in_words(&self, now: Timestamp) -> String {
        let plan = self.stop_plan(self.stopping.unwrap_or(StopMode::Drain));
        let mut lines = plan.lines(now);
        lines.extend(plan.next_interrupt().map(str::to_owned));
        lines.join("\n")
    }

    /// Returns true if this daemon has nothing left to wait for.
    pub(super) fn is_done(&self) -> bool {
        let quiet = !self.has_runs();
        let settled = || self.slots.values().all(|slot| slot.is_out_of_reach() || slot.is(Phase::Settling));
        let reading = self.boards.values().any(|state| state.read != ReadState::Done || state.waking);
        match (self.stopping, self.mode) {
            (Some(StopMode::Leave), _) => true,
            (Some(StopMode::Drain), _) => quiet,
            // Runs whose end only waits for their board are left to the next daemon: the run directory has the record.
            (Some(StopMode::Preempt | StopMode::Kill), _) => settled(),
            (None, DaemonMode::UntilIdle(_)) => quiet && !reading && self.backoff.why().is_none(),
            (None, DaemonMode::Forever | DaemonMode::Ending) => false,
        }
    }

    /// Returns true if there are runs that this daemon still handles.
    pub(crate) fn has_runs(&self) -> bool {
        !self.slots.values().all(Slot::is_out_of_reach)
    }
}

impl Slot {
    fn is(&self, phase: Phase) -> bool {
        self.live.as_ref().is_some_and(|live| live.phase == phase)
    }

    fn is_out_of_reach(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.phase.is_out_of_reach())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shim::rundir::StartedRecord;
    use tokio::sync::oneshot;
    use workspace::CheckedOut;

    use super::super::super::event::Event;
    use super::*;
    use crate::run::report::Report;
    use setup::config::Config;
    use setup::roster::PoolClaim;

    fn now() -> Timestamp {
        Timestamp::from_micros(1_000_000)
    }

    /// Returns a daemon that has adopted one run, and its task.
    fn adopting() -> (Dispatcher, TaskKey) {
        let board = BoardName::default();
        let live: LiveRun = serde_json::from_value(serde_json::json!({
            "board": board, "task": "t_00000001", "title": "work", "run": 1, "phase": "running",
            "started_at": now(), "workspace": "scratch",
        }))
        .unwrap();
        let config: Config = toml::from_str("").unwrap();
        let mut dispatcher = Dispatcher::new(vec![board.clone()], DaemonMode::Forever, Arc::new(config));
        let key = TaskKey { board, task: live.task.clone() };
        dispatcher.adopt(live, None, PoolClaim::default());
        (dispatcher, key)
    }

    fn report(dispatcher: &mut Dispatcher, key: &TaskKey, report: Report) {
        dispatcher.decide(Event::Run(key.clone(), report), now());
    }

    #[test]
    fn a_daemon_that_stops_waits_for_a_run_that_is_being_recorded_whatever_kept_it_before() {
        for phase in [Phase::Unkillable, Phase::Unknown] {
            let (mut dispatcher, key) = adopting();
            report(&mut dispatcher, &key, Report::Delayed(phase, "SIGKILL does not end it".to_owned()));
            assert!(!dispatcher.has_runs(), "{phase:?}");
            let (known, mut answer) = oneshot::channel();
            report(&mut dispatcher, &key, Report::Finishing(known));
            assert_eq!(answer.try_recv(), Ok(()));
            // Report that its shim sent before it ended.
            report(&mut dispatcher, &key, Report::Unkillable(RunId(1), "SIGKILL does not end it".to_owned()));
            for mode in [StopMode::Drain, StopMode::Preempt] {
                let (reply, _plan) = oneshot::channel();
                let actions = dispatcher.decide(Event::Stop(mode, reply), now());
                assert!(dispatcher.has_runs(), "{phase:?} {mode:?}: the lock of the root is kept");
                assert!(!actions.iter().any(|action| matches!(action, Action::Finish)), "{actions:?}");
            }
            report(&mut dispatcher, &key, Report::Ended(None));
            assert!(dispatcher.is_done());
        }
    }

    #[test]
    fn a_worktree_that_is_being_made_is_shown_with_its_progress_until_it_is_there() {
        let (mut dispatcher, key) = adopting();
        let shown = |dispatcher: &Dispatcher| dispatcher.snapshot().live[0].note.clone();
        let files = || Report::CheckingOut(CheckedOut { done: 1200, total: 60_000 });
        report(&mut dispatcher, &key, files());
        assert_eq!(shown(&dispatcher), None, "its command runs");
        if let Some(live) = dispatcher.slots.get_mut(&key).and_then(|slot| slot.live.as_mut()) {
            live.phase = Phase::Starting;
        }
        report(&mut dispatcher, &key, files());
        assert_eq!(shown(&dispatcher).unwrap(), "its worktree is being made: 1200 of 60000 files");
    }

    #[test]
    fn a_run_that_was_known_to_run_closes_no_breaker_when_it_is_shown_again() {
        let (mut dispatcher, key) = adopting();
        report(&mut dispatcher, &key, Report::Shortage("no descriptors".to_owned()));
        let record = || {
            let record = serde_json::json!({
                "version": 2, "pid": 7, "start_ticks": 9, "started_at_us": 11,
                "report": { "policy": "strict", "landlock_abi": 7, "layers": [] },
            });
            Box::new(serde_json::from_value::<StartedRecord>(record).unwrap())
        };
        report(&mut dispatcher, &key, Report::Started(record(), None));
        assert!(dispatcher.backoff.why().is_some());
        report(&mut dispatcher, &key, Report::Started(record(), Some(Timestamp::from_micros(0))));
        assert!(dispatcher.backoff.why().is_some(), "it began before that");
        report(&mut dispatcher, &key, Report::Started(record(), Some(now())));
        assert_eq!(dispatcher.backoff.why(), None);
    }
}
