//! Checks that the reported reason why a task waits is true, by a comparison with the state of the simulation.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{BoardName, Profile, Status, Task, Timestamp, Waiting, WaitingCode};
use tokio::sync::oneshot;

use super::daemon::SimulatedDaemon;
use super::fault::{Fault, Invariant};
use super::life::SharedState;
use super::plant::Plant;
use crate::owner::admission::{ClaimInputs, Claimant, StartClaim};
use crate::owner::event::Event;
use crate::owner::why::{Performer, left_open, merged};
use crate::run::environment::RosterAndConfig;
use crate::run::key::TaskKey;

/// Checks the reason of every task. A daemon without work in progress must not report any. Returns the earliest end of a
/// timed wait.
pub(super) fn of_all(
    daemon: &mut SimulatedDaemon,
    tasks: &[Task],
    on: &mut SharedState<'_>,
) -> Result<Option<Timestamp>, Fault> {
    let mut over: Option<Timestamp> = None;
    // While the board cannot be written, the daemon pauses before the next read, so due tasks wait longer.
    let is_quiet = daemon.is_quiet(on) && daemon.snapshot(on).paused.is_none();
    for task in with_reasons(daemon, tasks, on) {
        let found = match &task.why {
            None if silent(task.status) => Ok(()),
            None => Err("it says nothing".to_owned()),
            Some(why) if why.text.trim().is_empty() || why.text.contains('\n') => {
                Err("that is no line".to_owned())
            }
            Some(why) => judge(daemon, &task, why, (is_quiet, on)),
        };
        found.map_err(|seen| {
            let why = task.why.as_ref().map(|why| (why.code, why.text.clone(), why.until));
            let seen = format!("{} is {} and waits for {why:?}: {seen}", task.id, task.status);
            Fault::new(Invariant::TrueWhy, seen)
        })?;
        let until = task.why.as_ref().and_then(|why| why.until).into_iter().chain(task.not_before);
        over = over.into_iter().chain(until.filter(|until| *until > on.bench.now())).min();
    }
    Ok(over)
}

/// Returns true if a task with this status needs no reason, because it runs or is over.
fn silent(status: Status) -> bool {
    matches!(status, Status::Running | Status::Done | Status::Archived)
}

/// Returns the tasks with the reasons that users see: those of the board, merged with those of the dispatcher.
pub(super) fn with_reasons(
    daemon: &mut SimulatedDaemon,
    tasks: &[Task],
    on: &mut SharedState<'_>,
) -> Vec<Task> {
    let (roster, config) = (&*on.fixtures.roster, Arc::clone(&on.config));
    let config = &*config;
    let whys = on.bench.read(|view| view.waiting_all(tasks, &on.fixtures.accounts));
    let mut tasks: Vec<Task> =
        tasks.iter().zip(whys).map(|(task, why)| Task { why, ..task.clone() }).collect();
    let open: Vec<(usize, Option<Profile>)> = tasks
        .iter()
        .enumerate()
        .filter_map(|(at, task)| left_open(task).map(|Performer(profile)| (at, profile)))
        .collect();
    let claim = |(at, profile): &(usize, Option<Profile>)| {
        let task = &tasks[*at];
        let key = TaskKey { board: BoardName::default(), task: task.id.clone() };
        let claimant = Claimant { tenant: task.tenant.clone(), profile: profile.clone() };
        StartClaim::new(key, claimant, ClaimInputs::by(task), RosterAndConfig { roster, config })
    };
    let claims = open.iter().map(claim).collect();
    let mut answers = if open.is_empty() {
        BTreeMap::new()
    } else {
        let (reply, mut answer) = oneshot::channel();
        daemon.hear(Event::Why(claims, reply), on);
        answer.try_recv().unwrap_or_default()
    };
    for (at, profile) in open {
        let task = &mut tasks[at];
        let cannot_run = profile
            .as_ref()
            .filter(|_| task.status != Status::Running)
            .and_then(|profile| on.fixtures.roster.resolve(profile, task.policy.as_deref(), config).err());
        let answer = answers.remove(&task.id);
        if let Some(why) = merged(task, profile.as_ref(), cannot_run.as_ref(), answer) {
            task.why = Some(why);
        }
    }
    if on.plant == Some(Plant::LieAboutWhy) {
        for task in tasks.iter_mut().filter(|task| task.why.is_some()) {
            task.why = Some(Waiting::new(WaitingCode::Slot, "waits for a slot: 3 of 3 are taken"));
        }
    }
    tasks
}

fn judge(
    daemon: &SimulatedDaemon,
    task: &Task,
    why: &Waiting,
    (is_quiet, on): (bool, &SharedState<'_>),
) -> Result<(), String> {
    let (now, status) = (on.bench.now(), task.status);
    let says = |is_so: bool, not: &str| if is_so { Ok(()) } else { Err(not.to_owned()) };
    let waits = matches!(status, Status::Ready | Status::Review);
    let others = || daemon.others(&task.id);
    // A wait whose time has come ends when the dispatcher has decided on the event of the timer.
    let lasts = |until: Option<Timestamp>| !is_quiet || until.is_none_or(|until| until > now);
    match why.code {
        WaitingCode::Triage => says(status == Status::Triage, "it is not in triage"),
        WaitingCode::Parents => {
            let open = on.bench.read(|view| view.open_parents(&task.id));
            says(status == Status::Todo && !open.is_empty(), "no parent is open")?;
            says(open.iter().any(|parent| why.text.contains(parent.as_str())), "none of them is named")
        }
        WaitingCode::Time => {
            says(status == Status::Scheduled, "it has no time")?;
            says(!is_quiet || task.not_before.is_none_or(|at| at > now), "its time has come")
        }
        WaitingCode::Hold | WaitingCode::RateLimit => {
            let holds = on.bench.read(|view| view.holds());
            says(!holds.is_empty() && lasts(why.until), "nothing is held")
        }
        WaitingCode::Unassigned => says(task.assignee.is_none(), "it has an assignee"),
        WaitingCode::Nonspawnable => {
            let known = |name: &kernel::Profile| on.fixtures.roster.knows(name);
            says(!task.assignee.as_ref().is_some_and(known), "its assignee is known")
        }
        WaitingCode::Blocked
        | WaitingCode::Cancelled
        | WaitingCode::Question
        | WaitingCode::Approval
        | WaitingCode::GaveUp => says(status == Status::Blocked, "it is not blocked"),
        WaitingCode::Review => says(status == Status::Review, "it is not in review"),
        WaitingCode::Check => says(task.unchecked_run.is_some(), "there is nothing to check"),
        WaitingCode::Ending => {
            let run = task.current_run_id.and_then(|run| on.bench.read(|view| view.run(run)));
            let is_ending = run.is_some_and(|run| run.stop_reason.is_some() || run.verdict.is_some());
            says(!waits || !is_quiet, "nothing of it ends")?;
            says(is_ending || daemon.handles(&task.id), "nobody has asked its run to end")
        }
        WaitingCode::Starting | WaitingCode::Preparing => says(daemon.handles(&task.id), "nobody starts it"),
        WaitingCode::Slot => says(waits && others() > 0, "no slot is taken"),
        WaitingCode::Workspace => {
            says(waits && task.workspace != "scratch" && others() > 0, "nobody else works anywhere")
        }
        WaitingCode::Retry if status == Status::Scheduled => {
            says(!is_quiet || task.not_before.is_none_or(|at| at > now), "its time has come")
        }
        WaitingCode::Retry | WaitingCode::Environment | WaitingCode::Host => {
            says(lasts(why.until), "the wait is over")
        }
        WaitingCode::Turn => says(!is_quiet, "it is its turn, and nobody looks"),
        WaitingCode::Stopping => says(daemon.is_stopping, "nothing stops"),
        WaitingCode::Unkillable | WaitingCode::Survivors | WaitingCode::Stuck => {
            says(daemon.handles(&task.id), "nobody looks after its run")
        }
        WaitingCode::Pool => says(waits && others() > 0 && !task.pools.is_empty(), "no pool is taken"),
        WaitingCode::NoDaemon | WaitingCode::Pass | WaitingCode::Headroom | WaitingCode::Disabled => {
            Err("there is a daemon, no pass, and no such setting".to_owned())
        }
    }
}
