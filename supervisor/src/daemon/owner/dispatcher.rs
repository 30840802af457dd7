//! The owner's state and its decisions: an event in, actions out. No input or output happens here.

mod boards;
mod ending;
mod telling;

use std::collections::{BTreeMap, BTreeSet};

use kernel::{BoardName, Candidate, Reach, StopReason, Timestamp};

use super::action::{Action, Attempt, BoardWork, Horizon, Terms};
use super::admission::Claim;
use super::backoff::{Allowance, Backoff};
use super::room::Room;
use super::stopping::{StopMode, next_mode, sharper_mode};
use crate::config::Config;
use crate::daemon::run::environment::Needs;
use crate::daemon::run::live::{LiveRun, Phase, ShimHandle};
use crate::daemon::{Event, TaskKey};
use crate::exit::Code;
use crate::rundir::StartedRecord;

#[derive(Debug)]
struct Slot {
    claim: Claim,
    live: Option<LiveRun>,
    shim: Option<ShimHandle>,
    stop_sent: Option<StopReason>,
}

/// The look at what a board has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Look {
    /// There was none yet.
    #[default]
    Due,
    /// It shows the board as it is.
    Done,
    /// It is under way.
    UnderWay,
    /// It is under way, and the board has changed since.
    Overtaken,
}

#[derive(Debug)]
struct BoardState {
    look: Look,
    waking: bool,
    next_wake: Option<Timestamp>,
    /// How many ready tasks the last look left.
    waiting: u64,
    /// Whether it left some that could start but for what runs or broke.
    left: bool,
    /// Until when tasks whose assignee is no lane are noted.
    noted: Timestamp,
}

impl Default for BoardState {
    fn default() -> Self {
        BoardState {
            look: Look::default(),
            waking: false,
            next_wake: None,
            waiting: 0,
            left: false,
            noted: Timestamp::from_micros(0),
        }
    }
}

impl BoardState {
    /// Lets a board promote what is due, once at a time.
    fn wake_if_due(&mut self, board: &BoardName, now: Timestamp) -> Option<Action> {
        if self.waking || self.next_wake.is_none_or(|at| now < at) {
            return None;
        }
        self.waking = true;
        self.next_wake = None;
        Some(Action::Wake(board.clone()))
    }
}

/// The owner of everything that the daemon knows.
#[derive(Debug)]
pub(in crate::daemon) struct Dispatcher {
    boards: BTreeMap<BoardName, BoardState>,
    /// Boards that were found to be damaged while they were served: they are not looked at any more.
    damaged: BTreeSet<BoardName>,
    slots: BTreeMap<TaskKey, Slot>,
    horizon: Horizon,
    started: usize,
    stopping: Option<StopMode>,
    drain_until: Option<Timestamp>,
    backoff: Backoff,
    armed: Option<Timestamp>,
    wakeups: u64,
    config: std::sync::Arc<Config>,
}

impl Dispatcher {
    /// An owner of boards without live runs.
    pub(in crate::daemon) fn new(
        boards: Vec<BoardName>,
        horizon: Horizon,
        config: std::sync::Arc<Config>,
    ) -> Self {
        Dispatcher {
            boards: boards.into_iter().map(|name| (name, BoardState::default())).collect(),
            damaged: BTreeSet::new(),
            slots: BTreeMap::new(),
            horizon,
            started: 0,
            stopping: None,
            drain_until: None,
            backoff: Backoff::default(),
            armed: None,
            wakeups: 0,
            config,
        }
    }

    /// Takes new settings into use.
    pub(in crate::daemon) fn reconfigure(&mut self, config: std::sync::Arc<Config>) -> Vec<Action> {
        self.config = config;
        for state in self.boards.values_mut() {
            state.noted = Timestamp::from_micros(0);
        }
        self.backoff.forget();
        self.read_all()
    }

    /// Adds a run that an earlier daemon started.
    pub(in crate::daemon) fn adopt(&mut self, claim: Claim, live: LiveRun) {
        let slot = Slot { claim: claim.clone(), live: Some(live), shim: None, stop_sent: None };
        self.slots.insert(claim.key, slot);
    }

    /// Decides what an event means. `now` is the real-time clock.
    pub(in crate::daemon) fn decide(&mut self, event: Event, now: Timestamp) -> Vec<Action> {
        // `status` asks twice, and counts as one.
        self.wakeups += u64::from(!matches!(event, Event::Why(..) | Event::Room(..)));
        let mut actions = match event {
            Event::BoardChanged(board) => self.read(board).into_iter().collect(),
            Event::Forget(board, reply) => {
                // An asker that is gone wants no answer.
                drop(reply.send(self.forget(&board)));
                Vec::new()
            }
            Event::BoardDamaged(board, failure) => {
                // Runs on it go on, and their ends are recorded as far as that works; nothing new is started.
                self.boards.remove(&board);
                self.backoff.forget_board(&board);
                self.damaged.insert(board.clone());
                vec![Action::Withdraw(board, failure)]
            }
            Event::Woken(board, outcome) => self.woken(board, outcome, now),
            Event::BoardRead(board, Ok(work)) => self.board_read(&board, *work, now),
            Event::BoardRead(board, Err(failure)) => self.unreadable(board, &failure, now),
            Event::Claimed(key, live) => {
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.live = Some(*live);
                }
                Vec::new()
            }
            Event::Launched(key, shim) => self.launched(&key, shim),
            Event::Started(key, record) => self.started(&key, &record),
            Event::Ended(key, finished) => self.ended(key, finished.as_ref()),
            Event::ClaimFailed(key, failure) => {
                self.slots.remove(&key);
                self.backoff.tried(&key);
                self.started = self.started.saturating_sub(1);
                match failure.code {
                    Code::TryAgain | Code::Failed => {
                        self.backoff
                            .pause(crate::daemon::run::fault::with_hint(&failure.message, failure.hint), now);
                    }
                    // Somebody was faster, and the next read does not show the task; or it cannot be started as it is.
                    _ => self.backoff.defer(key, failure.to_string(), now),
                }
                // A free slot matters to every board.
                self.read_all()
            }
            Event::Shortage(why) => {
                self.backoff.shortage(why, now);
                Vec::new()
            }
            Event::Deferred(key, why) => {
                self.backoff.defer(key, why, now);
                Vec::new()
            }
            Event::StopFailed(key) => {
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.stop_sent = None;
                }
                self.stop_if_asked(&key)
            }
            Event::EnvironmentFailed(key, environment, error) => {
                self.backoff.trip(environment, key, error, now);
                Vec::new()
            }
            Event::Held(key, phase, why) => self.held(&key, phase, why),
            Event::Tick => self.tick(now),
            Event::ClockSet => {
                let mut actions = self.tick(now);
                // What is due on the clock since boot has another moment on the one that was set.
                actions.extend(self.read_all());
                actions
            }
            Event::Reload => vec![Action::Reload],
            Event::Stop(asked, reply) => {
                let actions = self.stop(next_mode(self.stopping, asked), now);
                // The asker may have gone; then nobody needs the answer.
                drop(reply.send(self.stop_plan(asked)));
                actions
            }
            Event::Interrupted => {
                let mut actions = self.stop(sharper_mode(self.stopping), now);
                actions.insert(0, Action::Say(self.stop_plan_in_words(now)));
                actions
            }
            Event::DrainOver if self.stopping == Some(StopMode::Drain) => self.stop(StopMode::Preempt, now),
            // It stops in another way by now.
            Event::DrainOver => Vec::new(),
            Event::Look(reply) => {
                // The asker may have gone; then nobody needs the answer.
                drop(reply.send(self.snapshot()));
                Vec::new()
            }
            Event::Why(asked, reply) => {
                drop(reply.send(self.why(asked)));
                Vec::new()
            }
            Event::Room(reply) => {
                drop(reply.send(self.room()));
                Vec::new()
            }
        };
        self.arm(&mut actions);
        if self.is_done() {
            actions.push(Action::Finish);
        }
        actions
    }

    fn started(&mut self, key: &TaskKey, record: &StartedRecord) -> Vec<Action> {
        let slot = self.slots.get_mut(key);
        let needs = slot.as_ref().and_then(|slot| slot.claim.needs.clone());
        if let Some(live) = slot.and_then(|slot| slot.live.as_mut()) {
            live.pid = Some(record.pid);
            live.sandbox = Some(record.report.summary());
            if live.phase == Phase::Starting {
                live.phase = Phase::Running;
            }
        }
        let freed = self.backoff.started(key, needs.iter().flat_map(Needs::all));
        if freed { self.read_all() } else { Vec::new() }
    }

    fn read(&mut self, board: BoardName) -> Option<Action> {
        if self.damaged.contains(&board) {
            return None;
        }
        let state = self.boards.entry(board.clone()).or_default();
        if matches!(state.look, Look::UnderWay | Look::Overtaken) {
            state.look = Look::Overtaken;
            return None;
        }
        state.look = Look::UnderWay;
        let noted = state.noted;
        Some(Action::Read(board, Box::new(self.room()), noted))
    }

    /// What may start now.
    fn room(&self) -> Room {
        Room::beside(self.slots.values().map(|slot| &slot.claim), std::sync::Arc::clone(&self.config))
            .known(&self.backoff, self.stopping)
            .limited(self.budget())
    }

    fn read_all(&mut self) -> Vec<Action> {
        let boards: Vec<BoardName> = self.boards.keys().cloned().collect();
        boards.into_iter().filter_map(|board| self.read(board)).collect()
    }

    fn board_done(&mut self, board: BoardName) -> Vec<Action> {
        let state = self.boards.entry(board.clone()).or_default();
        let before = std::mem::replace(&mut state.look, Look::Done);
        if before == Look::Overtaken { self.read(board).into_iter().collect() } else { Vec::new() }
    }

    fn board_read(&mut self, board: &BoardName, work: BoardWork, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        for run in &work.to_stop {
            let key = TaskKey { board: board.clone(), task: run.task_id.clone() };
            actions.extend(self.stop_run(&key, run.stop_reason.unwrap_or(StopReason::Kill)));
        }
        let state = self.boards.entry(board.clone()).or_default();
        state.next_wake = work.next_wake;
        state.noted = work.noted;
        state.left = work.left;
        state.waiting = work.ready;
        if !self.backoff.is_paused() {
            actions.extend(state.wake_if_due(board, now));
        }
        for (task, why) in work.unknown {
            actions.push(Action::NoteNonspawnable(TaskKey { board: board.clone(), task }, why));
        }
        actions.extend(self.start_admitted(board, work.admitted, now));
        actions.extend(self.board_done(board.clone()));
        actions
    }

    /// Starts what a look has admitted, as far as that still holds: runs may have begun since, on another board as well.
    fn start_admitted(
        &mut self,
        board: &BoardName,
        admitted: Vec<(Candidate, Claim)>,
        now: Timestamp,
    ) -> Vec<Action> {
        let probes = self.backoff.allowance() == Allowance::OneProbe;
        let mut room = self.room();
        let mut actions = Vec::new();
        let mut overtaken = false;
        for (candidate, claim) in admitted {
            match room.admit(&claim) {
                Ok(()) => {
                    self.started += 1;
                    let slot = Slot { claim: claim.clone(), live: None, shim: None, stop_sent: None };
                    self.backoff.try_environments(&claim.key, claim.environments());
                    let charge = self.backoff.charge(&claim.key);
                    let terms = Terms { needs: claim.needs, charge };
                    self.slots.insert(claim.key, slot);
                    actions.push(Action::Start(board.clone(), Box::new(Attempt { candidate, terms })));
                }
                // Something else may start in its place.
                Err(refusal) => overtaken |= refusal.reach != Reach::Everything,
            }
        }
        if let Some(state) = self.boards.get_mut(board) {
            state.waiting = state.waiting.saturating_sub(u64::try_from(actions.len()).unwrap_or(u64::MAX));
            if overtaken {
                state.look = Look::Overtaken;
            }
        }
        if probes {
            if !actions.is_empty() {
                self.backoff.probing(now);
            } else if self.boards.values().all(|state| !state.left) {
                self.backoff.rest();
            }
        }
        actions
    }

    /// How many more tasks a pass with a limit may start.
    fn budget(&self) -> Option<usize> {
        match self.horizon {
            Horizon::Forever | Horizon::Idle(None) => None,
            Horizon::Idle(Some(max)) => Some(max.saturating_sub(self.started)),
        }
    }

    fn launched(&mut self, key: &TaskKey, shim: ShimHandle) -> Vec<Action> {
        let Some(slot) = self.slots.get_mut(key) else { return Vec::new() };
        if let Some(live) = &mut slot.live {
            live.deadline_us = shim.deadline_us;
            live.workspace_path.clone_from(&shim.workspace_path);
            live.cgroup.clone_from(&shim.cgroup);
        }
        slot.shim = Some(shim);
        let prepared = slot.claim.preparing.take();
        // It may have been asked to end while its shim was being made.
        let mut actions = self.stop_if_asked(key);
        if prepared.is_some() {
            // Others, of any board, may wait for its repository.
            actions.extend(self.read_all());
        }
        actions
    }

    /// Stops a run again, or late, for whatever reason there is: the board's, which is read, or the daemon's own.
    fn stop_if_asked(&mut self, key: &TaskKey) -> Vec<Action> {
        let mut actions: Vec<Action> = self.read(key.board.clone()).into_iter().collect();
        match self.stopping {
            Some(StopMode::Kill) => actions.extend(self.stop_run(key, StopReason::Kill)),
            Some(StopMode::Preempt) => actions.extend(self.stop_run(key, StopReason::Preempted)),
            Some(StopMode::Leave | StopMode::Drain) | None => {}
        }
        actions
    }

    fn ended(&mut self, key: TaskKey, finished: Option<&kernel::Finished>) -> Vec<Action> {
        self.slots.remove(&key);
        self.backoff.tried(&key);
        // A finished run changes its board, which brings a read; one that never was frees a slot all the same, and a
        // free slot matters to every board.
        if finished.is_some() && self.boards.len() == 1 {
            self.read(key.board).into_iter().collect()
        } else {
            self.read_all()
        }
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Action> {
        self.armed = None;
        let mut actions = Vec::new();
        if self.backoff.expire(now) {
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
        // A board that cannot be written cannot wake what is due either; the end of the pause looks again.
        let paused = self.backoff.is_paused();
        let wakes = self.boards.values().filter_map(|state| state.next_wake).filter(|_| !paused);
        let nearest = wakes.chain(self.backoff.nearest()).min();
        if nearest != self.armed {
            self.armed = nearest;
            actions.push(Action::Arm(nearest));
        }
    }
}
