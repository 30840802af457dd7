//! Displays of the owner loop: the reason why a task does not run, by the rules that start tasks, and the live runs.

use std::collections::BTreeMap;

use kernel::{TaskId, WaitingCode};

use super::super::admission::{StartClaim, Weight};
use super::super::capacity::Capacity;
use super::super::snapshot::{DISABLED, Snapshot};
use super::Dispatcher;
use crate::run::live::{LiveRun, Phase};

impl Dispatcher {
    /// Returns for each task the reason why it does not run, by the rules that start tasks, as of now.
    pub(crate) fn why(&self, asked: Vec<StartClaim>) -> BTreeMap<TaskId, kernel::Waiting> {
        let capacity = self.capacity();
        asked.into_iter().map(|claim| (claim.key.task.clone(), self.why_not(&claim, &capacity))).collect()
    }

    fn why_not(&self, claim: &StartClaim, capacity: &Capacity) -> kernel::Waiting {
        let waiting = |code, text: String| kernel::Waiting::new(code, text);
        if let Some(slot) = self.slots.get(&claim.key) {
            let live = slot.live.as_ref();
            let note = live.and_then(|live| live.note.clone());
            return match (live.map(|live| live.phase), note) {
                (Some(Phase::Unknown), note) => waiting(WaitingCode::Survivors, note.unwrap_or_default()),
                (Some(Phase::Unkillable), note) => waiting(WaitingCode::Unkillable, note.unwrap_or_default()),
                (Some(Phase::Settling), Some(note)) => waiting(
                    WaitingCode::Stuck,
                    format!("its run cannot be ended yet, and will be tried again: {note}"),
                ),
                (Some(Phase::Ending), Some(note)) => waiting(WaitingCode::Ending, note),
                (Some(Phase::Ending | Phase::Settling), None) => {
                    waiting(WaitingCode::Ending, "its run is being ended".to_owned())
                }
                (Some(Phase::Starting), Some(note)) => waiting(WaitingCode::Preparing, note),
                (Some(Phase::Starting | Phase::Running) | None, _) => {
                    waiting(WaitingCode::Starting, "is being started".to_owned())
                }
            };
        }
        capacity.refusal(claim).map_or_else(
            || waiting(WaitingCode::Turn, "waits for its turn: tasks before it start first".to_owned()),
            |refusal| *refusal.why,
        )
    }

    /// Returns the state as one line.
    pub(crate) fn summary(&self) -> String {
        let waiting: u64 = self.boards.values().map(|state| state.waiting).sum();
        let taken = self.slots.values().filter(|slot| slot.claim.weight == Weight::Slot).count();
        let mut line = format!("{taken} of {} slots taken", self.config.limits.total());
        if waiting > 0 {
            line = format!("{line}, {waiting} waiting");
        }
        let broken = self.backoff.broken().len();
        if broken > 0 {
            line = format!("{line}, {broken} broken");
        }
        let paused = self.paused().map(|why| format!("paused: {why}"));
        for text in paused.into_iter().chain(self.stopping.map(|mode| mode.word().to_owned())) {
            line.push_str("; ");
            line.push_str(&text);
        }
        line
    }

    /// Returns the phase of each open run.
    pub(crate) fn phases(&self) -> impl Iterator<Item = Phase> {
        self.slots.values().filter_map(|slot| slot.live.as_ref()).map(|live| live.phase)
    }

    /// Returns the reason why nothing is started, during a pause.
    fn paused(&self) -> Option<String> {
        let disabled = (!self.config.dispatch.enabled).then(|| DISABLED.to_owned());
        disabled.or_else(|| self.backoff.why())
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let mut live: Vec<LiveRun> = self.slots.values().filter_map(|slot| slot.live.clone()).collect();
        live.sort_by_key(|run| (run.started_at, run.run));
        Snapshot {
            live,
            paused: self.paused(),
            stopping: self.stopping.map(|mode| mode.word().to_owned()),
            pools: self.capacity().pools(),
            broken: self.backoff.broken(),
            wakeups: self.wakeups,
        }
    }
}
