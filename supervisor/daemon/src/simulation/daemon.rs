//! A simulated daemon: the real dispatcher with its queues, timer and tasks, which advance in any order.

use std::collections::VecDeque;
use std::sync::Arc;

use kernel::{BoardName, Holder, Run, TaskId, Timestamp};
use tokio::sync::oneshot;

use super::dice::chance;
use super::hazard::Hazard;
use super::host::HostRun;
use super::life::{Freed, Life, SharedState};
use super::plant::Plant;
use crate::owner::action::Action;
use crate::owner::backoff::BreakerChange;
use crate::owner::capacity::Capacity;
use crate::owner::dispatcher::Dispatcher;
use crate::owner::event::Event;
use crate::owner::mode::DaemonMode;
use crate::owner::scan::work;
use crate::owner::snapshot::Snapshot;
use crate::owner::stopping::StopMode;
use crate::run::environment::{Needs, RosterAndConfig};
use crate::run::key::TaskKey;
use crate::run::live::LiveRun;
use crate::run::pending_starts::PendingStarts;
use crate::run::report::Report;
use base::failure::Failure;
use setup::config::Config;

/// An operation on the board that the owner loop has requested, in progress.
#[derive(Debug)]
enum BoardOperation {
    Read(Box<Capacity>, Timestamp),
    Wake,
    Note(TaskKey, String),
}

/// A possible next move of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// The owner loop takes the next event.
    Decide,
    /// An errand to the board, by its number.
    Errand(usize),
    /// A run, by its number.
    Run(usize),
}

/// A simulated daemon.
#[derive(Debug)]
pub(super) struct SimulatedDaemon {
    dispatcher: Dispatcher,
    board: BoardName,
    reports: VecDeque<(TaskKey, Report)>,
    events: VecDeque<Event>,
    errands: Vec<BoardOperation>,
    pub(super) lives: Vec<Life>,
    starts: PendingStarts,
    timer: Option<Timestamp>,
    clock_was_set: bool,
    pub(super) config: Arc<Config>,
    /// True once it was asked to stop.
    pub(super) is_stopping: bool,
    /// True once the owner loop has ended.
    pub(super) has_finished: bool,
}

impl SimulatedDaemon {
    /// Starts a daemon, which first adopts the runs of an earlier one.
    pub(super) fn start(on: &mut SharedState<'_>) -> Self {
        let board = BoardName::default();
        let config = Arc::clone(&on.config);
        let dispatcher =
            Dispatcher::new(vec![board.clone()], DaemonMode::Forever, Arc::clone(&config)).drawing(chance);
        let mut daemon = SimulatedDaemon {
            dispatcher,
            board: board.clone(),
            reports: VecDeque::new(),
            events: VecDeque::from([Event::BoardChanged(board.clone())]),
            errands: Vec::new(),
            lives: Vec::new(),
            starts: PendingStarts::default(),
            timer: None,
            clock_was_set: false,
            config,
            is_stopping: false,
            has_finished: false,
        };
        let open: Vec<Run> = on.bench.read(|view| view.open_runs());
        let supervised: Vec<Run> = open.into_iter().filter(|run| run.holder == Holder::Supervisor).collect();
        for run in &supervised {
            let key = TaskKey { board: board.clone(), task: run.task_id.clone() };
            let task = on.bench.read(|view| view.task(&run.task_id));
            let live = LiveRun::from_run(&board, run, task.as_ref());
            let known = RosterAndConfig { roster: &on.fixtures.roster, config: &on.config };
            let profile = run.profile.as_ref();
            let needs = profile
                .map(|profile| Needs::for_task(&key, profile, run.policy.as_deref(), &live.workspace, known));
            let named = task.map(|task| task.pools).unwrap_or_default();
            let resources = profile.map(|profile| on.fixtures.roster.pool_claim(profile, &on.config));
            daemon.dispatcher.adopt(live, needs.clone(), resources.unwrap_or_default().with(&named));
            let adopted = Life::adopted(key, run.clone(), needs);
            let is_forgotten = on.plant == Some(Plant::ForgetTheLiving);
            daemon.lives.push(if is_forgotten { adopted.forgotten() } else { adopted });
        }
        let is_over = |one: &&HostRun| supervised.iter().all(|run| run.id != one.run) && !one.is_locked();
        let over: Vec<_> = on.host.all().filter(is_over).map(|run| run.run).collect();
        for run in over {
            on.host.remove(run);
        }
        daemon
    }

    /// Returns its possible next moves.
    pub(super) fn moves(&self, on: &SharedState<'_>) -> Vec<Move> {
        let mut moves = Vec::new();
        if self.has_event(on) {
            // Weighted, because the owner loop has the most to do.
            moves.extend([Move::Decide; 3]);
        }
        moves.extend((0..self.errands.len()).map(Move::Errand));
        let lives = self.lives.iter().enumerate();
        moves
            .extend(lives.filter(|(_, life)| life.can_go_on(on.bench, on.host)).map(|(at, _)| Move::Run(at)));
        moves
    }

    fn has_event(&self, on: &SharedState<'_>) -> bool {
        !self.reports.is_empty()
            || !self.events.is_empty()
            || self.is_due(on.bench.now())
            || self.clock_was_set
    }

    fn is_due(&self, now: Timestamp) -> bool {
        self.timer.is_some_and(|at| at <= now)
    }

    /// Makes one move. Returns its description.
    pub(super) fn advance(&mut self, step: Move, on: &mut SharedState<'_>, freed: &mut Freed) -> String {
        match step {
            Move::Decide => self.decide_next(on),
            Move::Errand(at) => {
                let errand = self.errands.swap_remove(at);
                self.run_errand(errand, on)
            }
            Move::Run(at) => self.advance_life(at, on, freed),
        }
    }

    fn advance_life(&mut self, at: usize, on: &mut SharedState<'_>, freed: &mut Freed) -> String {
        let Some(life) = self.lives.get_mut(at) else { return String::new() };
        let (did, reports) = life.advance(on, freed);
        let (key, step_text) =
            (life.key.clone(), format!("{} run {:?} {did}", life.key.task, life.run().map(|run| run.0)));
        if !life.is_starting() {
            self.starts.end(&key);
        }
        if life.is_over() {
            self.lives.swap_remove(at);
        }
        for report in reports {
            let is_end = matches!(report, Report::Ended(_)) && on.plant == Some(Plant::LoseEnds);
            if !(is_end && on.dice.one_in(10)) {
                self.reports.push_back((key.clone(), report));
            }
        }
        step_text
    }

    /// Decides on the next event. Reports of runs come first, as in the real owner loop's queue.
    fn decide_next(&mut self, on: &mut SharedState<'_>) -> String {
        let event = if let Some((key, report)) = self.reports.pop_front() {
            Event::Run(key, report)
        } else if self.clock_was_set {
            self.clock_was_set = false;
            Event::ClockSet
        } else if self.is_due(on.bench.now()) && (self.events.is_empty() || on.dice.one_in(2)) {
            self.timer = None;
            Event::Tick
        } else if let Some(event) = self.events.pop_front() {
            event
        } else {
            return "the owner loop hears nothing".to_owned();
        };
        let step_text = format!("decide {}", in_short(&event));
        let actions = self.dispatcher.decide(event, on.bench.now());
        self.act(actions, on);
        step_text
    }

    /// Decides on an event at once, like a request that waits for its reply.
    pub(super) fn hear(&mut self, event: Event, on: &mut SharedState<'_>) {
        let actions = self.dispatcher.decide(event, on.bench.now());
        self.act(actions, on);
    }

    fn act(&mut self, actions: Vec<Action>, on: &mut SharedState<'_>) {
        for action in actions {
            match action {
                Action::Read(_, capacity, noted) => self.errands.push(BoardOperation::Read(capacity, noted)),
                Action::Wake(_) => self.errands.push(BoardOperation::Wake),
                Action::Start(board, attempt) => {
                    let key = TaskKey { board, task: attempt.candidate.task.clone() };
                    let cancel = self.starts.begin(&key);
                    self.lives.push(Life::starting(key, *attempt, cancel));
                }
                Action::GiveUp(key) => self.starts.give_up(&key),
                Action::Stop(key, shim, request) => {
                    if on.dice.one_in(30) && on.hazards.contains(&Hazard::LostRequests) {
                        self.reports.push_back((key, Report::StopFailed));
                        continue;
                    }
                    let run = shim.workspace_path.and_then(|path| path.to_str()?.parse().ok());
                    if let Some(run) = run {
                        on.host.stop(kernel::RunId(run), &request);
                    }
                }
                // The jobs of a board run in the order of submission.
                Action::Keep(_, BreakerChange::Open(on_what, why, until)) => {
                    drop(on.bench.call(move |board| board.open_breaker(&on_what, &why, until).map(drop)));
                }
                Action::Keep(_, BreakerChange::Closed(on_what)) => {
                    drop(on.bench.call(move |board| board.close_breaker(&on_what)));
                }
                Action::NoteNonspawnable(key, why) => self.errands.push(BoardOperation::Note(key, why)),
                Action::Arm(_) if on.plant == Some(Plant::LoseTimer) => {}
                Action::Arm(at) => self.timer = at,
                Action::Say(_) => {}
                Action::LimitDrain => self.events.push_back(Event::DrainOver),
                Action::Reload => {
                    for action in self.dispatcher.reconfigure(Arc::clone(&self.config)) {
                        if let Action::Read(_, capacity, noted) = action {
                            self.errands.push(BoardOperation::Read(capacity, noted));
                        }
                    }
                }
                Action::Withdraw(..) | Action::Finish => self.has_finished = true,
            }
        }
    }

    fn run_errand(&mut self, errand: BoardOperation, on: &mut SharedState<'_>) -> String {
        let board = self.board.clone();
        match errand {
            BoardOperation::Read(mut capacity, noted) => {
                let roster = &on.fixtures.roster;
                let work = on.bench.read(|view| work(view, &board, &mut capacity, roster, noted));
                self.events.push_back(Event::BoardRead(board, Ok(Box::new(work))));
                "the board is read".to_owned()
            }
            BoardOperation::Wake => {
                let woken = on.bench.call(|board| board.wake_due()).map(drop).map_err(Failure::from);
                self.events.push_back(Event::Woken(board, woken));
                "the board promotes what is due".to_owned()
            }
            BoardOperation::Note(key, why) => {
                drop(on.bench.call(move |board| board.note_nonspawnable(&key.task, &why)));
                "the board notes that nothing runs a task".to_owned()
            }
        }
    }

    /// Queues the news that the board has changed, unless it is queued already.
    pub(super) fn board_changed(&mut self) {
        let is_known = self.events.iter().any(|event| matches!(event, Event::BoardChanged(_)));
        if !is_known {
            self.events.push_back(Event::BoardChanged(self.board.clone()));
        }
    }

    /// Queues the news that the clock was set.
    pub(super) fn clock_set(&mut self) {
        self.clock_was_set = true;
    }

    /// Asks it to stop.
    pub(super) fn stop(&mut self, mode: StopMode) {
        let (reply, _) = oneshot::channel();
        self.is_stopping = true;
        self.events.push_back(Event::Stop(mode, reply));
    }

    /// Changes its configuration.
    pub(super) fn reload(&mut self, config: Arc<Config>) {
        self.config = config;
        self.events.push_back(Event::Reload);
    }

    /// Returns true if nothing happens before the host, the clock or a person acts.
    pub(super) fn is_quiet(&self, on: &SharedState<'_>) -> bool {
        self.moves(on).is_empty()
    }

    /// Returns true if it handles a task, or has reports about it.
    pub(super) fn handles(&self, task: &TaskId) -> bool {
        self.lives.iter().any(|life| life.key.task == *task)
            || self.reports.iter().any(|(key, _)| key.task == *task)
    }

    /// Returns the number of other tasks that it handles.
    pub(super) fn others(&self, task: &TaskId) -> usize {
        let lives = self.lives.iter().map(|life| &life.key.task);
        lives.chain(self.reports.iter().map(|(key, _)| &key.task)).filter(|other| *other != task).count()
    }

    /// Returns the time of its timer.
    pub(super) fn armed(&self) -> Option<Timestamp> {
        self.timer
    }

    pub(super) fn capacity(&mut self, on: &mut SharedState<'_>) -> Capacity {
        let (reply, mut answer) = oneshot::channel();
        self.hear(Event::Room(reply), on);
        answer.try_recv().unwrap()
    }

    pub(super) fn snapshot(&mut self, on: &mut SharedState<'_>) -> Snapshot {
        let (reply, mut answer) = oneshot::channel();
        self.hear(Event::Look(reply), on);
        answer.try_recv().unwrap()
    }
}

fn in_short(event: &Event) -> String {
    match event {
        Event::Run(key, report) => {
            let text = format!("{report:?}");
            let word: String = text.chars().take_while(|c| c.is_alphanumeric()).collect();
            format!("{word} of {}", key.task)
        }
        Event::BoardRead(_, Ok(work)) => format!("BoardRead with {} to start", work.admitted.len()),
        other => {
            let text = format!("{other:?}");
            text.chars().take_while(|c| c.is_alphanumeric()).collect()
        }
    }
}
