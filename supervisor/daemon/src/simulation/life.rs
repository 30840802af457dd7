//! Life of one run in a simulated daemon: the steps of `run_task`, one at a time, with the real judgements between
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::{Clock as _, EndCause, Ending, EventId, Handed, Placement, Run, RunId};
use policies::Report as SandboxReport;
use shim::rundir::{ExitRecord, FailedStart, ProcessIdentity, RunDir, StartedRecord, Step, VERSION};
use tokio_util::sync::CancellationToken;

use super::bench::Bench;
use super::dice::Dice;
use super::hazard::{Hazard, Hazards};
use super::host::{Host, HostRun, ShimLife, WorkerLife};
use super::plant::Plant;
use super::traces::{HostTraces, group_of};
use crate::run::attempt::{Attempt, Charge, Terms};
use crate::run::end_run::{StartFailure, failed_start, not_started};
use crate::run::environment::Needs;
use crate::run::fault::Fault;
use crate::run::key::TaskKey;
use crate::run::live::{LiveRun, Phase, ShimHandle};
use crate::run::proof::{Proof, RunFacts, Shim, judge};
use crate::run::release::decided;
use crate::run::report::{Ended, Report};
use base::failure::Failure;
use host::watch::Watched;
use setup::config::Config;
use setup::lanes::Contact;
use setup::roster::Roster;

/// Directory of scratch workspaces.
const SCRATCH: &str = "/simulated/workspaces";

/// State shared by every run of a daemon.
pub(super) struct SharedState<'a> {
    pub(super) bench: &'a mut Bench,
    pub(super) host: &'a mut Host,
    pub(super) dice: &'a mut Dice,
    pub(super) hazards: &'a Hazards,
    pub(super) plant: Option<Plant>,
    pub(super) fixtures: &'a Fixtures,
    pub(super) config: Arc<Config>,
}

/// Objects made once: a lane cannot be made without files, nor a process without a host.
pub(super) struct Fixtures {
    pub(super) roster: Arc<Roster>,
    /// Profiles that share an account, which no simulated configuration changes.
    pub(super) accounts: kernel::Accounts,
    pub(super) silent: RunDir,
    pub(super) process: Arc<Watched>,
}

#[derive(Debug)]
enum Stage {
    Claim(Box<Attempt>),
    Prepare,
    Spawn,
    /// The shim is watched. A daemon that adopted the run has to find it first.
    Watch {
        is_child: bool,
    },
    Prove,
    /// A person has to decide, or a process to end.
    Decide {
        since: EventId,
        watch: Option<i32>,
    },
    End(Box<Ending>),
    Remove(Option<Box<Ended>>),
    Over,
}

/// A run in a daemon.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) key: TaskKey,
    terms: Terms,
    run: Option<Run>,
    stage: Stage,
    shim: Shim,
    cancel: CancellationToken,
    has_told_shim: bool,
    has_told_start: bool,
    has_told_end: bool,
    shown: Option<EventId>,
}

/// Runs that were freed by a person's decision alone.
pub(super) type Freed = BTreeSet<RunId>;

impl Life {
    /// Makes the life of a run that is to be claimed.
    pub(super) fn starting(key: TaskKey, attempt: Attempt, cancel: CancellationToken) -> Self {
        let terms = attempt.terms.clone();
        Life { cancel, ..Self::new(key, terms, Stage::Claim(Box::new(attempt))) }
    }

    /// Makes the life of a run that an earlier daemon started.
    pub(super) fn adopted(key: TaskKey, run: Run, needs: Option<Needs>) -> Self {
        let terms = Terms { needs, charge: Charge::Environment };
        Life { run: Some(run), ..Self::new(key, terms, Stage::Watch { is_child: false }) }
    }

    /// Treats every run of an earlier daemon as over: a planted fault.
    pub(super) fn forgotten(self) -> Self {
        Life { stage: Stage::End(Box::new(Ending::new(EndCause::NeverStarted))), ..self }
    }

    fn new(key: TaskKey, terms: Terms, stage: Stage) -> Self {
        Life {
            key,
            terms,
            run: None,
            stage,
            shim: Shim::Unseen,
            cancel: CancellationToken::new(),
            has_told_shim: false,
            has_told_start: false,
            has_told_end: false,
            shown: None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Returns true if its start may still be given up.
    pub(super) fn is_starting(&self) -> bool {
        matches!(self.stage, Stage::Claim(_) | Stage::Prepare | Stage::Spawn)
    }

    pub(super) fn run(&self) -> Option<RunId> {
        self.run.as_ref().map(|run| run.id)
    }

    /// Returns true if it has something to do now.
    pub(super) fn can_go_on(&self, bench: &Bench, host: &Host) -> bool {
        let Some(run) = &self.run else { return !self.is_over() };
        match &self.stage {
            Stage::Watch { is_child } => {
                let Some(on_host) = host.get(run.id) else { return true };
                let comes = *is_child && on_host.shim == ShimLife::Coming;
                !on_host.is_locked() && !comes
                    || self
                        .has_news(on_host.shim, on_host.records.as_ref().is_some_and(|one| one.has_started))
            }
            Stage::Decide { since, watch } => {
                self.watched_is_gone(host, *watch) || bench.read(|view| decided(view, run, *since)).is_some()
            }
            Stage::Over => false,
            Stage::Claim(_)
            | Stage::Prepare
            | Stage::Spawn
            | Stage::Prove
            | Stage::End(_)
            | Stage::Remove(_) => true,
        }
    }

    fn has_news(&self, shim: ShimLife, has_started: bool) -> bool {
        shim == ShimLife::Named && (!self.has_told_shim || has_started && !self.has_told_start)
    }

    fn watched_is_gone(&self, host: &Host, watch: Option<i32>) -> bool {
        let is_alive = |run: RunId| {
            host.get(run).is_some_and(|run| run.worker == WorkerLife::Alive && Some(run.pid()) == watch)
        };
        watch.is_some() && !self.run().is_some_and(is_alive)
    }

    /// Makes one step. Returns its description, and the reports to the owner loop.
    pub(super) fn advance(
        &mut self,
        on: &mut SharedState<'_>,
        freed: &mut Freed,
    ) -> (&'static str, Vec<Report>) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Claim(attempt) => self.claim(&attempt, on),
            Stage::Prepare => self.prepare(on),
            Stage::Spawn => self.spawn(on),
            Stage::Watch { is_child } => self.watch(is_child, on),
            Stage::Prove => self.prove(on),
            Stage::Decide { since, watch } => self.decide((since, watch), on, freed),
            Stage::End(ending) => self.end(ending, on),
            Stage::Remove(ended) => {
                if let Some(run) = self.run() {
                    on.host.remove(run);
                }
                ("is over", vec![Report::Ended(ended)])
            }
            Stage::Over => ("is over", Vec::new()),
        }
    }

    fn claim(&mut self, attempt: &Attempt, on: &mut SharedState<'_>) -> (&'static str, Vec<Report>) {
        let candidate = &attempt.candidate;
        let resolved = on
            .fixtures
            .roster
            .resolve(&candidate.assignee, candidate.policy.as_deref(), &on.config)
            .map(drop);
        if let Err(why) = resolved {
            return ("cannot be claimed", vec![Report::ClaimFailed(Failure::from(why))]);
        }
        let mut token_hash = [0; 32];
        token_hash[..8].copy_from_slice(&on.dice.draw().to_le_bytes());
        let limit = std::time::Duration::from_hours(1);
        let limit = kernel::TimeLimit { limit, from: kernel::LimitSource::Configuration };
        let start = kernel::Start {
            profile: Some(candidate.assignee.clone()),
            claim_lock: "simulated:1:claim".to_owned(),
            token_hash,
            nonce: on.dice.draw().to_string(),
            policy: Some("default".to_owned()),
            account: None,
            log_path: None,
            max_runtime: Some(limit),
            boot_id: Host::boot_id(&on.bench.clock),
            deadline_boottime: None,
            takes_messages: false,
        };
        let (id, name) = (candidate.task.clone(), self.key.board.clone());
        let place = Placement { path: format!("{SCRATCH}/{id}"), branch: None, worker_uid: None };
        let claimed = on.bench.call(move |board| {
            let run = board.start_run(&id, start)?;
            board.record_workspace(run.id, &place)?;
            Ok((run, board.expect_task(&id)?))
        });
        match claimed {
            Ok((run, task)) => {
                let live = LiveRun::from_run(&name, &run, Some(&task));
                self.run = Some(run);
                self.stage = Stage::Prepare;
                ("is claimed", vec![Report::Claimed(Box::new(live))])
            }
            Err(error) => ("is not claimed", vec![Report::ClaimFailed(Failure::from(error))]),
        }
    }

    fn prepare(&mut self, on: &mut SharedState<'_>) -> (&'static str, Vec<Report>) {
        let Some(run) = self.run.clone() else { return ("has no run", Vec::new()) };
        let needs = self.terms.needs.as_ref();
        let fault = if self.cancel.is_cancelled() {
            Some(Fault::Abandoned)
        } else if on.dice.one_in(12) && on.hazards.contains(&Hazard::FailedStarts) {
            Some(match (on.dice.below(4), needs) {
                (0, Some(needs)) => Fault::Environment(needs.program()),
                (1, _) => Fault::Host,
                (2, _) => Fault::Moment,
                _ => Fault::Task,
            })
        } else {
            None
        };
        let Some(fault) = fault else {
            on.host.prepare(&run, on.dice);
            self.stage = Stage::Spawn;
            return ("is prepared", Vec::new());
        };
        let (step, why) = ("prepare".to_owned(), "failed to prepare: simulated".to_owned());
        let cause = StartFailure { step, error: "simulated".to_owned(), why };
        let (report, mut ending) = failed_start(&self.terms, fault, cause);
        ending.failure_limit = on.config.worker.failure_limit.get();
        self.stage = Stage::End(Box::new(ending));
        ("cannot be prepared", report.into_iter().collect())
    }

    fn handle(&self, on: &SharedState<'_>) -> Report {
        let run = self.run().map_or(0, RunId::get);
        Report::Launched(ShimHandle {
            dir: on.fixtures.silent.clone(),
            process: Arc::clone(&on.fixtures.process),
            deadline_us: None,
            cgroup: None,
            // Encodes the run's number, by which a request to end it finds it on the host.
            workspace_path: Some(run.to_string().into()),
        })
    }

    fn spawn(&mut self, on: &mut SharedState<'_>) -> (&'static str, Vec<Report>) {
        if let Some(run) = self.run() {
            on.host.spawn(run);
            if on.plant == Some(Plant::StartTwice) && on.dice.one_in(20) {
                on.host.doubles.push(run);
            }
        }
        self.has_told_shim = true;
        self.stage = Stage::Watch { is_child: true };
        ("has a shim", vec![self.handle(on)])
    }

    fn watch(&mut self, is_child: bool, on: &mut SharedState<'_>) -> (&'static str, Vec<Report>) {
        let Some(id) = self.run() else { return ("has no run", Vec::new()) };
        let (shim, has_started) = on.host.get(id).map_or((ShimLife::Killed, false), |run| {
            (run.shim, run.records.as_ref().is_some_and(|records| records.has_started))
        });
        if shim == ShimLife::Named && !self.has_told_shim {
            self.has_told_shim = true;
            self.stage = Stage::Watch { is_child };
            return ("has its shim found", vec![self.handle(on)]);
        }
        if has_started && !self.has_told_start {
            self.stage = Stage::Watch { is_child };
            return self.tell_start(id, on);
        }
        let is_up =
            matches!(shim, ShimLife::Locked | ShimLife::Named) || is_child && shim == ShimLife::Coming;
        if is_up {
            self.stage = Stage::Watch { is_child };
            return ("goes on", Vec::new());
        }
        if is_child {
            self.shim = if shim == ShimLife::Finished { Shim::Finished } else { Shim::Gone };
        }
        self.stage = Stage::Prove;
        ("has lost its shim", Vec::new())
    }

    fn tell_start(&mut self, id: RunId, on: &mut SharedState<'_>) -> (&'static str, Vec<Report>) {
        self.has_told_start = true;
        let pid = on.host.get(id).map_or(1, HostRun::pid);
        let recorded = on.bench.call(move |board| board.record_spawned(id, pid, &serde_json::Value::Null));
        if recorded.is_err() {
            return ("has begun, and that is not recorded", Vec::new());
        }
        let report = SandboxReport { policy: "default".to_owned(), landlock_abi: 0, layers: Vec::new() };
        let worker = ProcessIdentity { pid, start_ticks: 0, pidfs_inode: None };
        let record = StartedRecord { version: VERSION, worker, started_at_us: 0, report };
        let started_at = recorded.ok().filter(|is_news| *is_news).map(|_| on.bench.clock.now());
        ("has begun", vec![Report::Started(Box::new(record), started_at)])
    }

    fn prove(&mut self, on: &mut SharedState<'_>) -> (&'static str, Vec<Report>) {
        let Some(run) = self.run.clone() else { return ("has no run", Vec::new()) };
        let learnt = on.bench.read(|view| view.run(run.id)).unwrap_or(run);
        let has_cgroup = on.host.get(learnt.id).is_some_and(|run| run.has_cgroup);
        let mut facts = RunFacts {
            path: format!("/simulated/runs/{}", learnt.id).into(),
            root: "simulated".to_owned(),
            boot_id: Host::boot_id(&on.bench.clock),
            groups: has_cgroup.then(|| group_of(learnt.id)).into_iter().collect(),
            was_prepared: learnt.worker_pid.is_some(),
            shim: self.shim,
            run: learnt,
            contact: Contact::default(),
        };
        let id = facts.run.id;
        let instead = Self::of_another(id, on);
        let clock = Arc::clone(&on.bench.clock);
        let mut traces =
            HostTraces { host: &mut *on.host, run: id, clock: &clock, silent: &on.fixtures.silent, instead };
        match judge(&mut facts, &mut traces) {
            Ok(Proof::Ended(ending)) => {
                self.stage = Stage::End(ending);
                ("is proved to be over", Vec::new())
            }
            Ok(Proof::NotStarted(failed, ending)) => self.has_not_started(failed, *ending),
            Ok(Proof::Alive) => {
                self.stage = Stage::Watch { is_child: false };
                ("lives", Vec::new())
            }
            Ok(Proof::Unknown { .. }) if on.plant == Some(Plant::ReleaseWithoutProof) => {
                self.stage = Stage::End(Box::new(Ending::new(EndCause::ShimKilled)));
                ("is taken for over", Vec::new())
            }
            Ok(Proof::Unknown { why, watch }) => {
                let since = self.shown.unwrap_or_else(|| on.bench.read(|view| view.last_event()));
                self.shown = Some(since);
                self.stage = Stage::Decide { since, watch };
                ("may live", vec![Report::Delayed(Phase::Unknown, why)])
            }
            Ok(Proof::Unkillable(_)) => {
                self.stage = Stage::Prove;
                (
                    "cannot be killed",
                    vec![Report::Delayed(Phase::Unkillable, "SIGKILL does not end it".to_owned())],
                )
            }
            Err(why) => {
                self.stage = Stage::Prove;
                ("cannot be judged", vec![Report::Delayed(Phase::Settling, why)])
            }
        }
    }

    /// Returns the exit of another run, if that fault is planted.
    fn of_another(id: RunId, on: &SharedState<'_>) -> Option<ExitRecord> {
        if on.plant != Some(Plant::ExitOfAnotherAttempt) {
            return None;
        }
        let is_other = |run: &&HostRun| run.run != id && run.code != 0;
        on.host.all().filter(is_other).find_map(|run| run.records.as_ref()?.exit.clone())
    }

    fn has_not_started(&mut self, failed: FailedStart, ending: Ending) -> (&'static str, Vec<Report>) {
        let is_exec = failed.step == Step::Exec;
        let (report, recorded) = not_started(&self.terms, failed);
        self.stage = Stage::End(Box::new(Ending { cause: recorded.cause, ..ending }));
        (if is_exec { "has no program" } else { "was not started" }, report.into_iter().collect())
    }

    fn decide(
        &mut self,
        (since, watch): (EventId, Option<i32>),
        on: &mut SharedState<'_>,
        freed: &mut Freed,
    ) -> (&'static str, Vec<Report>) {
        let Some(run) = self.run.clone() else { return ("has no run", Vec::new()) };
        if let Some(reason) = on.bench.read(|view| decided(view, &run, since)) {
            let clock = Arc::clone(&on.bench.clock);
            let is_marked = on.host.get(run.id).is_some_and(|run| run.is_marked || run.has_cgroup);
            let mut traces = HostTraces {
                host: &mut *on.host,
                run: run.id,
                clock: &clock,
                silent: &on.fixtures.silent,
                instead: None,
            };
            if is_marked {
                traces.kill();
            } else {
                freed.insert(run.id);
            }
            self.stage = Stage::End(Box::new(Ending::new(EndCause::Stopped(reason))));
            return ("is freed by a person", Vec::new());
        }
        if self.watched_is_gone(on.host, watch) {
            self.stage = Stage::Prove;
            return ("is looked at again", Vec::new());
        }
        self.stage = Stage::Decide { since, watch };
        ("waits for a person", Vec::new())
    }

    fn end(&mut self, ending: Box<Ending>, on: &mut SharedState<'_>) -> (&'static str, Vec<Report>) {
        let Some(id) = self.run() else { return ("has no run", Vec::new()) };
        if !std::mem::replace(&mut self.has_told_end, true) {
            self.stage = Stage::End(ending);
            return (
                "is over and is to be recorded",
                vec![Report::Finishing(tokio::sync::oneshot::channel().0)],
            );
        }
        let recorded = ending.clone();
        let handed = Handed::default();
        match on.bench.call(move |board| board.end_run(id, &recorded, &handed)) {
            Ok(finished) => {
                let (lived, at) = (ending.lived, ending.ended_at);
                self.stage = Stage::Remove(Some(Box::new(Ended { finished, lived, at })));
                ("ends", Vec::new())
            }
            Err(kernel::Error::NotFound { .. }) => {
                self.stage = Stage::Remove(None);
                ("is not known any more", Vec::new())
            }
            Err(error) => {
                self.stage = Stage::End(ending);
                ("cannot be ended", vec![Report::Delayed(Phase::Settling, error.to_string())])
            }
        }
    }
}
