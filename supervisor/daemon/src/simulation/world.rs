//! World of a seed: a board, a host, people and workers, and one daemon after the other.

use std::sync::Arc;
use std::time::Duration;

use kernel::{EventId, Replay, Task, Timestamp};

use super::bench::{Bench, Death};
use super::calm::{self, Rest};
use super::checks;
use super::daemon::{Move, SimulatedDaemon};
use super::dice::Dice;
use super::fault::{Fault, StepHistory};
use super::hazard::{Hazard, Hazards};
use super::host::{Host, WorkerLife};
use super::ledger::Ledger;
use super::life::{Fixtures, SharedState};
use super::plant::Plant;
use super::{people, truth, workers};
use crate::owner::stopping::StopMode;
use setup::config::Config;

/// Interval between full checks of all acknowledged facts and the file, in steps.
const THOROUGHLY: u64 = 500;
/// Interval between calm periods, in steps. In a calm period, fault injection stops until everything has finished.
const CALM: u64 = 3000;

pub(super) struct World {
    dice: Dice,
    bench: Bench,
    host: Host,
    ledger: Ledger,
    daemon: Option<SimulatedDaemon>,
    config: Arc<Config>,
    fixtures: Arc<Fixtures>,
    plant: Option<Plant>,
    /// Hazards in force now, and outside of calm periods.
    hazards: Hazards,
    at_other_times: Hazards,
    /// Replay of the log so far, and the last checked event.
    replay: Replay,
    seen: EventId,
    /// Tasks of the board, if it has not changed since they were read.
    tasks: Option<Vec<Task>>,
    /// State of the last check of waits: decisions made since, whether the daemon was idle then, and the end of the
    /// earliest timed wait.
    stirred: bool,
    was_quiet: bool,
    over: Option<Timestamp>,
    pub(super) history: StepHistory,
}

/// Returns one of the configurations between which operators change.
fn settings(number: usize) -> Arc<Config> {
    let texts = [
        "[limits]\nmax_running = 3",
        "[limits]\nmax_running = 4\nper_tenant = 2",
        "[limits]\nmax_running = 2\nper_profile = 1",
        "[limits]\nmax_running = 6",
    ];
    Arc::new(toml::from_str(texts[number % texts.len()]).unwrap())
}

impl World {
    pub(super) fn new(seed: u64, plant: Option<Plant>, hazards: Hazards, fixtures: Arc<Fixtures>) -> Self {
        let mut dice = Dice::new(seed);
        let bench = Bench::new(dice.draw());
        World {
            config: settings(dice.below(4)),
            dice,
            bench,
            host: Host::default(),
            ledger: Ledger::default(),
            daemon: None,
            fixtures,
            plant,
            at_other_times: hazards.clone(),
            hazards,
            replay: Replay::default(),
            seen: EventId(0),
            tasks: None,
            stirred: false,
            was_quiet: false,
            over: None,
            history: StepHistory::default(),
        }
    }

    /// Does one thing, and checks the invariants.
    pub(super) fn step(&mut self) -> Result<(), Fault> {
        let step_text = self.anything();
        self.history.step(&step_text);
        self.settle()?;
        if self.history.steps.is_multiple_of(THOROUGHLY) {
            checks::thoroughly(&self.bench, &self.ledger)?;
            self.host.tidy();
        }
        if self.history.steps.is_multiple_of(CALM) {
            self.calm()?;
        }
        Ok(())
    }

    /// Makes the last check.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.calm()?;
        checks::thoroughly(&self.bench, &self.ledger)
    }

    /// Informs the daemon of the changes, or buries it, and checks the changed parts.
    fn settle(&mut self) -> Result<(), Fault> {
        let finished = self.daemon.as_ref().is_some_and(|daemon| daemon.has_finished);
        if self.bench.is_dead {
            self.daemon = None;
            self.history.note("the daemon dies");
            if self.plant == Some(Plant::GoBack) {
                self.bench.go_back();
            } else {
                self.bench.crash();
            }
            checks::thoroughly(&self.bench, &self.ledger)?;
            (self.replay, self.tasks) = (Replay::default(), None);
        } else if finished {
            self.daemon = None;
            self.history.note("the daemon ends");
        }
        if self.bench.take_changed() {
            checks::after_commit(&self.bench, &self.host, &mut self.ledger)?;
            self.tasks = None;
            self.seen = checks::of_events(&self.bench, &self.ledger, self.seen)?;
            checks::of_replay(&self.bench, &mut self.replay)?;
            let is_lost = self.plant == Some(Plant::LoseCommits) && self.dice.one_in(3);
            if let Some(daemon) = self.daemon.as_mut().filter(|_| !is_lost) {
                daemon.board_changed();
            }
        }
        checks::after_host(&self.host, &self.ledger)?;
        checks::after_words(&self.bench, &self.ledger)?;
        self.look_at_waits()
    }

    fn parts(&mut self) -> (Option<&mut SimulatedDaemon>, SharedState<'_>, &mut Ledger) {
        let parts = SharedState {
            bench: &mut self.bench,
            host: &mut self.host,
            dice: &mut self.dice,
            hazards: &self.hazards,
            plant: self.plant,
            fixtures: &self.fixtures,
            config: Arc::clone(&self.config),
        };
        (self.daemon.as_mut(), parts, &mut self.ledger)
    }

    /// Checks the reason of each waiting task, and that an idle daemon misses nothing. Skipped while neither the owner
    /// loop has decided nor the board has changed, until the first wait is over.
    fn look_at_waits(&mut self) -> Result<(), Fault> {
        let is_over = self.over.is_some_and(|over| over <= self.bench.now());
        let is_known = self.tasks.is_some() && !self.stirred && !is_over;
        let (daemon, on, _) = self.parts();
        let is_quiet = daemon.is_some_and(|daemon| daemon.is_quiet(&on));
        let was_quiet = std::mem::replace(&mut self.was_quiet, is_quiet);
        if is_known && (was_quiet || !is_quiet) {
            return Ok(());
        }
        self.stirred = false;
        let tasks = self.tasks.take().unwrap_or_else(|| calm::tasks(&self.bench));
        let checked = self.look_at(&tasks);
        self.tasks = Some(tasks);
        checked
    }

    fn look_at(&mut self, tasks: &[Task]) -> Result<(), Fault> {
        let (Some(daemon), mut on, _) = self.parts() else { return Ok(()) };
        let over = truth::of_all(daemon, tasks, &mut on)?;
        if daemon.is_quiet(&on) && !daemon.is_stopping {
            calm::check_quiet(daemon, &mut on)?;
        }
        self.over = over;
        Ok(())
    }

    /// Does something that could happen now.
    fn anything(&mut self) -> String {
        self.bench.clock.advance(Duration::from_micros(self.dice.draw() % 20_000));
        if self.daemon.is_none() && self.dice.one_in(3) {
            return self.begin();
        }
        match self.dice.below(1000) {
            0..620 => self.go_on(),
            620..790 => people::act(&mut self.bench, &mut self.ledger, &mut self.dice, self.plant),
            790..800 => workers::exit_again(&mut self.bench, &mut self.ledger, &mut self.dice),
            800..930 if self.hazards.contains(&Hazard::Workers) => {
                workers::act((&mut self.bench, &self.host), &mut self.ledger, &mut self.dice, self.plant)
            }
            800..980 => {
                let by = Duration::from_millis(self.dice.draw() % 20_000);
                self.bench.clock.advance(by);
                format!("{by:?} pass")
            }
            _ => self.inject(),
        }
    }

    fn begin(&mut self) -> String {
        let (_, mut on, _) = self.parts();
        let daemon = SimulatedDaemon::start(&mut on);
        self.stirred = true;
        let step_text = format!("a daemon starts, with {} runs", daemon.lives.len());
        self.daemon = Some(daemon);
        step_text
    }

    /// Lets the daemon or the host make its next move.
    fn go_on(&mut self) -> String {
        let (daemon, mut on, ledger) = self.parts();
        let on_host = on.host.movable();
        let moves = daemon.as_ref().map(|daemon| daemon.moves(&on)).unwrap_or_default();
        let at = on.dice.below((on_host.len() + moves.len()).max(1));
        if let (Some(step), Some(daemon)) = (moves.get(at), daemon) {
            let runs = daemon.lives.len();
            let step_text = daemon.advance(*step, &mut on, &mut ledger.freed);
            // The owner loop learns of other moves by its next event.
            let has_changed = *step == Move::Decide || daemon.lives.len() != runs;
            self.stirred |= has_changed;
            return step_text;
        }
        let Some(run) = on_host.get(at - moves.len().min(at)) else { return "nothing happens".to_owned() };
        let clock = Arc::clone(&on.bench.clock);
        on.host.advance(*run, on.dice, &clock, on.hazards)
    }

    /// Injects a fault.
    fn inject(&mut self) -> String {
        let hazard = match self.dice.below(12) {
            0..4 => Hazard::Deaths,
            4..8 => Hazard::FullDisk,
            8 => Hazard::Clock,
            9 => Hazard::Settings,
            10 => Hazard::Stops,
            _ => Hazard::Reboots,
        };
        if !self.hazards.contains(&hazard) {
            return "nothing happens".to_owned();
        }
        self.stirred = true;
        match (hazard, &mut self.daemon) {
            (Hazard::Deaths, _) => self.kill_daemon(),
            (Hazard::FullDisk, _) if self.dice.one_in(2) && !self.bench.is_full() => {
                let full = u8::try_from(1 + self.dice.below(3)).unwrap_or(1);
                self.bench.fill(full);
                format!("the disk is full ({full})")
            }
            (Hazard::FullDisk, _) => {
                self.bench.fill(0);
                "the disk has room".to_owned()
            }
            (Hazard::Clock, _) => self.set_clock(),
            (Hazard::Settings, Some(daemon)) => {
                let number = self.dice.below(4);
                self.config = settings(number);
                daemon.reload(Arc::clone(&self.config));
                format!("settings {number} are read")
            }
            (Hazard::Stops, Some(daemon)) => {
                let modes = [StopMode::Leave, StopMode::Drain, StopMode::Preempt, StopMode::Kill];
                let mode = modes[self.dice.below(4)];
                daemon.stop(mode);
                format!("the daemon is asked to stop: {mode:?}")
            }
            (Hazard::Reboots, _) if self.dice.one_in(4) => {
                self.host.reboot(&self.bench.clock);
                self.bench.is_dead = true;
                "the host goes down and comes up".to_owned()
            }
            _ => "nothing happens".to_owned(),
        }
    }

    fn kill_daemon(&mut self) -> String {
        let death = match self.dice.below(4) {
            0 => {
                self.bench.is_dead = true;
                return "the daemon is killed".to_owned();
            }
            1 => Death::BeforeCommit,
            _ => Death::AfterCommit,
        };
        self.bench.die_at_next_write(death);
        format!("the daemon is to die at its next write, {death:?}")
    }

    fn set_clock(&mut self) -> String {
        let by = i64::try_from(self.dice.draw() % 7_200_000_000).unwrap_or(0) - 3_600_000_000;
        let now = self.bench.now();
        self.bench.clock.set(Timestamp::from_micros(now.as_micros() + by));
        if let Some(daemon) = &mut self.daemon {
            daemon.clock_set();
        }
        format!("the clock is set by {} s", by / 1_000_000)
    }

    /// Stops fault injection, and steps until all that can finish has done so.
    fn calm(&mut self) -> Result<(), Fault> {
        self.hazards = Hazards::new();
        self.bench.fill(0);
        self.history.step("calm");
        for _ in 0..calm::REST {
            if self.daemon.as_ref().is_none_or(|daemon| daemon.is_stopping) {
                self.daemon = None;
                let step_text = self.begin();
                self.history.step(&step_text);
                self.settle()?;
                continue;
            }
            self.stirred = true;
            let (Some(daemon), mut on, ledger) = self.parts() else { continue };
            let next = calm::next(daemon, &mut on)?;
            if let Rest::Over = next {
                self.hazards = self.at_other_times.clone();
                return Ok(());
            }
            let mut step_text = String::new();
            if let Rest::Host(run) = next
                && on.host.get(run).is_some_and(|run| run.worker == WorkerLife::Alive)
            {
                step_text = workers::complete(on.bench, ledger, run);
            }
            step_text.push_str(&calm::rest(daemon, &next, &mut on, &mut ledger.freed));
            self.history.step(&step_text);
            self.settle()?;
        }
        let (Some(daemon), mut on, _) = self.parts() else { return Ok(()) };
        Err(calm::unsettled_fault(daemon, &mut on))
    }
}
