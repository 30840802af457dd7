//! State of the owner loop, and its decisions: an event in, actions out. Does no input or output.

mod boards;
mod ending;
mod runs;
mod show;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kernel::{BoardName, Candidate, Reach, StopReason, Timestamp, WaitingCode};

use self::boards::{BoardState, ReadState};
use super::action::{Action, BoardWork};
use super::admission::{Claimant, StartClaim};
use super::backoff::{Allowance, Backoff};
use super::capacity::Capacity;
use super::event::Event;
use super::mode::DaemonMode;
use super::stopping::{StopMode, next_mode, sharper_mode};
use crate::run::attempt::{Attempt, Terms};
use crate::run::environment::Needs;
use crate::run::key::TaskKey;
use crate::run::live::{LiveRun, ShimHandle};
use host::headroom::{self, Gauge};
use setup::config::Config;
use setup::roster::PoolClaim;

/// Interval between measurements of a host with too little memory or too much load.
const MEASURE: Duration = Duration::from_secs(2);

/// A run from its admission to the record of its end.
#[derive(Debug)]
struct Slot {
    claim: StartClaim,
    live: Option<LiveRun>,
    shim: Option<ShimHandle>,
    stop_sent: Option<StopReason>,
    /// True while its end is being recorded and nothing of it is left.
    is_finishing: bool,
}

impl Slot {
    /// Makes the slot of a claim without any report yet.
    fn for_claim(claim: StartClaim) -> Self {
        Slot { claim, live: None, shim: None, stop_sent: None, is_finishing: false }
    }
}

/// State of the owner loop.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    boards: BTreeMap<BoardName, BoardState>,
    /// Boards found damaged while they were served; they are not read any more.
    damaged: BTreeSet<BoardName>,
    slots: BTreeMap<TaskKey, Slot>,
    mode: DaemonMode,
    started: usize,
    stopping: Option<StopMode>,
    drain_until: Option<Timestamp>,
    backoff: Backoff,
    /// Function that measures the host.
    gauge: Gauge,
    /// Time of the next measurement, while tasks wait for memory or a lower load.
    measure_at: Option<Timestamp>,
    armed: Option<Timestamp>,
    wakeups: u64,
    config: Arc<Config>,
}

impl Dispatcher {
    /// Makes the state for boards without live runs.
    pub(crate) fn new(boards: Vec<BoardName>, mode: DaemonMode, config: Arc<Config>) -> Self {
        Dispatcher {
            boards: boards.into_iter().map(|name| (name, BoardState::default())).collect(),
            damaged: BTreeSet::new(),
            slots: BTreeMap::new(),
            mode,
            started: 0,
            stopping: None,
            drain_until: None,
            backoff: Backoff::default(),
            gauge: headroom::read,
            measure_at: None,
            armed: None,
            wakeups: 0,
            config,
        }
    }

    /// Replaces the source of random numbers.
    #[cfg(test)]
    pub(crate) fn drawing(self, chance: fn() -> f64) -> Self {
        Dispatcher { backoff: self.backoff.drawing(chance), ..self }
    }

    /// Applies a new configuration.
    pub(crate) fn reconfigure(&mut self, config: Arc<Config>) -> Vec<Action> {
        self.config = config;
        for state in self.boards.values_mut() {
            state.noted = Timestamp::from_micros(0);
        }
        self.backoff.forget();
        self.read_all()
    }

    /// Adds a run that an earlier daemon started.
    pub(crate) fn adopt(&mut self, live: LiveRun, needs: Option<Needs>, resources: PoolClaim) {
        let key = TaskKey { board: live.board.clone(), task: live.task.clone() };
        let claimant = Claimant { tenant: live.tenant.clone(), profile: live.profile.clone() };
        let claim = StartClaim::taking(key.clone(), claimant, &live.workspace, needs, resources);
        let claim = claim.prepared().for_question(live.consult);
        self.slots.insert(key, Slot { live: Some(live), ..Slot::for_claim(claim) });
    }

    /// Decides on an event. `now` is the real-time clock.
    pub(crate) fn decide(&mut self, event: Event, now: Timestamp) -> Vec<Action> {
        // `status` sends two requests, and counts once. Requests of the watchdog do not count.
        self.wakeups += u64::from(!matches!(event, Event::Why(..) | Event::Room(..) | Event::Beat(_)));
        let mut actions = match event {
            Event::BoardChanged(board) => self.read(board).into_iter().collect(),
            Event::Forget(board, reply) => {
                // The caller may have gone; then the result is not needed.
                drop(reply.send(self.forget(&board)));
                Vec::new()
            }
            Event::BoardDamaged(board, failure) => vec![self.damaged(board, failure)],
            Event::Woken(board, outcome) => self.woken(board, outcome, now),
            Event::BoardRead(board, Ok(work)) => self.board_read(&board, *work, now),
            Event::BoardRead(board, Err(failure)) => self.unreadable(board, &failure, now),
            Event::Run(key, report) => self.reported(key, report, now),
            Event::Tick => self.tick(now),
            Event::ClockSet => {
                // A task that changes from now on may have an earlier time than those that were seen.
                for state in self.boards.values_mut() {
                    state.noted = Timestamp::from_micros(0);
                }
                let mut actions = self.tick(now);
                // Times on the boot clock now correspond to other times of day.
                actions.extend(self.read_all());
                actions
            }
            Event::Reload => vec![Action::Reload],
            Event::Stop(asked, reply) => {
                let actions = self.stop(next_mode(self.stopping, asked), now);
                // The caller may have gone; then the reply is not needed.
                drop(reply.send(self.stop_plan(asked)));
                actions
            }
            Event::Interrupted => {
                let mut actions = self.stop(sharper_mode(self.stopping), now);
                actions.insert(0, Action::Say(self.stop_plan_in_words(now)));
                actions
            }
            Event::DrainOver if self.stopping == Some(StopMode::Drain) => self.stop(StopMode::Preempt, now),
            // A sharper stop has replaced the drain.
            Event::DrainOver => Vec::new(),
            Event::Beat(reply) => {
                // The caller may have gone; then the reply is not needed.
                reply.send(()).ok();
                Vec::new()
            }
            Event::Look(reply) => {
                // The caller may have gone; then the reply is not needed.
                drop(reply.send(self.snapshot()));
                Vec::new()
            }
            Event::Why(asked, reply) => {
                drop(reply.send(self.why(asked)));
                Vec::new()
            }
            Event::Room(reply) => {
                drop(reply.send(self.capacity()));
                Vec::new()
            }
        };
        actions
            .extend(self.backoff.take_changed().into_iter().map(|(board, kept)| Action::Keep(board, kept)));
        self.arm(&mut actions);
        if self.is_done() {
            actions.push(Action::Finish);
        }
        actions
    }

    /// Returns the current capacity.
    fn capacity(&self) -> Capacity {
        self.capacity_with(None)
    }

    /// Returns the current capacity, without regard to the tenants of the named board.
    fn capacity_with(&self, board: Option<&BoardName>) -> Capacity {
        let running = self.slots.values().map(|slot| &slot.claim);
        let capacity = Capacity::with_running(running, Arc::clone(&self.config))
            .with_owner_state(&self.backoff, self.stopping)
            .measured(self.gauge)
            .limited(self.budget());
        if self.has_tenants_beside(board) { capacity.shared() } else { capacity }
    }

    /// Returns true if a board other than the named one has, or had, a tenant. Boards that were not read yet may have
    /// one.
    fn has_tenants_beside(&self, board: Option<&BoardName>) -> bool {
        let mut others = self.boards.iter().filter(|(name, _)| Some(*name) != board);
        others.any(|(_, state)| state.has_tenants != Some(false))
    }

    fn board_read(&mut self, board: &BoardName, work: BoardWork, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        for run in &work.to_stop {
            let key = TaskKey { board: board.clone(), task: run.task_id.clone() };
            actions.extend(self.stop_run(&key, run.stop_reason.unwrap_or(StopReason::Kill)));
        }
        if self.backoff.learn(board, &work.breakers, now) {
            actions.extend(self.read_all());
        }
        let was_shared = self.has_tenants_beside(None);
        let state = self.boards.entry(board.clone()).or_default();
        state.has_tenants = Some(work.has_tenants);
        state.next_wake = work.next_wake;
        state.noted = work.noted;
        state.left = work.left;
        state.waiting = work.ready;
        if !self.backoff.is_paused() {
            actions.extend(state.wake_if_due(board, now));
        }
        if work.lacks_headroom {
            self.measure_later(now);
        }
        for (task, why) in work.unknown {
            actions.push(Action::NoteNonspawnable(TaskKey { board: board.clone(), task }, why));
        }
        actions.extend(self.start_admitted(board, work.admitted, now));
        if was_shared && !self.has_tenants_beside(None) && self.boards.len() > 1 {
            // Reads of the other boards left the reserve.
            actions.extend(self.read_all());
        }
        actions.extend(self.board_done(board.clone()));
        actions
    }

    /// Starts the tasks that a scan has admitted, if they may still start: other runs may have begun since, on other
    /// boards too.
    fn start_admitted(
        &mut self,
        board: &BoardName,
        admitted: Vec<(Candidate, StartClaim)>,
        now: Timestamp,
    ) -> Vec<Action> {
        let probes = self.backoff.allowance() == Allowance::OneProbe;
        let mut capacity = self.capacity();
        let mut actions = Vec::new();
        let mut overtaken = false;
        for (candidate, claim) in admitted {
            match capacity.admit(&claim) {
                Ok(()) => {
                    self.started += 1;
                    let slot = Slot::for_claim(claim.clone());
                    self.backoff.try_environments(&claim.key, claim.environments());
                    self.backoff.try_host(&claim.key, claim.tenant.as_ref());
                    let charge = self.backoff.charge(&claim.key);
                    let terms = Terms { needs: claim.needs, charge };
                    let resources = claim.resources;
                    self.slots.insert(claim.key, slot);
                    actions.push(Action::Start(
                        board.clone(),
                        Box::new(Attempt { candidate, resources, terms }),
                    ));
                }
                Err(refusal) => {
                    if refusal.why.code == WaitingCode::Headroom {
                        self.measure_later(now);
                    }
                    // Another task may start in its place.
                    overtaken |= refusal.reach != Reach::Everything;
                }
            }
        }
        if let Some(state) = self.boards.get_mut(board) {
            state.waiting = state.waiting.saturating_sub(u64::try_from(actions.len()).unwrap_or(u64::MAX));
            if overtaken {
                state.read = ReadState::Overtaken;
            }
        }
        if probes {
            if !actions.is_empty() {
                // The probe is on its way, so the next one waits for a moment.
                self.backoff.probing(now);
            } else if self.boards.values().all(|state| !state.left) {
                // No board has a task left that could be a probe, so nothing would end the pause.
                self.backoff.rest();
            }
        }
        actions
    }

    /// Schedules a measurement of the host, because a task waits for memory or a lower load, whose return is not
    /// announced.
    fn measure_later(&mut self, now: Timestamp) {
        self.measure_at.get_or_insert(now.after(MEASURE));
    }

    /// Returns the number of tasks that a limited pass may still start.
    fn budget(&self) -> Option<usize> {
        match self.mode {
            DaemonMode::Forever | DaemonMode::UntilIdle(None) => None,
            DaemonMode::Ending => Some(0),
            DaemonMode::UntilIdle(Some(max)) => Some(max.saturating_sub(self.started)),
        }
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Action> {
        self.armed = None;
        let mut actions = Vec::new();
        // If the clock was set far back, the time lies too far ahead.
        let measure = self.measure_at.take_if(|at| *at <= now || *at > now.after(MEASURE)).is_some();
        if self.backoff.expire(now) || measure {
            actions.extend(self.read_all());
        }
        if !self.backoff.is_paused() {
            for (board, state) in &mut self.boards {
                actions.extend(state.wake_if_due(board, now));
            }
        }
        actions
    }

    fn arm(&mut self, actions: &mut Vec<Action>) {
        // A board that cannot be written cannot promote tasks either; the end of the pause reads it again.
        let paused = self.backoff.is_paused();
        let wakes = self.boards.values().filter_map(|state| state.next_wake).filter(|_| !paused);
        let nearest = wakes.chain(self.backoff.nearest()).chain(self.measure_at).min();
        if nearest != self.armed {
            self.armed = nearest;
            actions.push(Action::Arm(nearest));
        }
    }
}
