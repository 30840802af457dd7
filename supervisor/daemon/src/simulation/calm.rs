//! Check for starvation: tasks that can start do so, and everything finishes once fault injection stops.

use kernel::{BoardName, Filter, Status, Task, Timestamp};

use super::bench::Bench;
use super::daemon::{Move, SimulatedDaemon};
use super::fault::{Fault, Invariant};
use super::host::WorkerLife;
use super::life::{Freed, SharedState};
use super::people::{PROFILES, make_way};
use super::truth::with_reasons;
use crate::owner::scan::scan;

/// Number of steps that suffices for any simulated board to come to rest.
pub(super) const REST: usize = 4000;

/// Next step of a calm period.
#[derive(Debug)]
pub(super) enum Rest {
    /// The daemon makes this move.
    Daemon(Move),
    /// This run advances on the host.
    Host(kernel::RunId),
    /// Time passes until this point.
    Until(Timestamp),
    /// A person decides about a run that cannot be judged.
    Person,
    /// Nothing is left to do.
    Over,
}

/// Checks an idle daemon: no task could start, and the timer is set for each due time.
pub(super) fn check_quiet(daemon: &mut SimulatedDaemon, on: &mut SharedState<'_>) -> Result<(), Fault> {
    let starved = |seen: String| Err(Fault::new(Invariant::NoStarvation, seen));
    let board = BoardName::default();
    let mut capacity = daemon.capacity(on);
    let is_paused = daemon.snapshot(on).paused.is_some();
    let roster = &on.fixtures.roster;
    let scanned = on.bench.read(|view| scan(view, &board, &mut capacity, roster));
    if let Some((candidate, _)) = scanned.admitted.first() {
        return starved(format!("{} could start, nothing is under way, and nobody looks", candidate.task));
    }
    let wake = on.bench.read(|view| view.next_wake());
    match (wake, daemon.armed()) {
        (Some(wake), None) => {
            return starved(format!("the board wants to wake at {wake:?}, and no timer is set"));
        }
        (Some(wake), Some(armed)) if !is_paused && armed > wake => {
            return starved(format!(
                "the board wants to wake at {wake:?}, and the timer is set for {armed:?}"
            ));
        }
        _ => {}
    }
    let to_stop = on.bench.read(|view| view.runs_to_stop());
    if let Some(run) = to_stop.iter().find(|run| !daemon.handles(&run.task_id)) {
        return starved(format!("run {} is to be stopped, and no daemon has it", run.id));
    }
    let is_unasked = |run: &&kernel::Run| {
        on.host
            .get(run.id)
            .is_some_and(|run| run.worker == WorkerLife::Alive && run.is_locked() && !run.is_asked())
    };
    if let Some(run) = to_stop.iter().find(is_unasked) {
        return starved(format!("run {} is to be stopped, and its shim was not asked", run.id));
    }
    let live = daemon.snapshot(on).live;
    if let Some(ghost) = live.iter().find(|live| !daemon.handles(&live.task)) {
        return starved(format!("run {} of {} has a slot, and is over", ghost.run, ghost.task));
    }
    Ok(())
}

/// Finds the next step without actions of people and without faults.
pub(super) fn next(daemon: &mut SimulatedDaemon, on: &mut SharedState<'_>) -> Result<Rest, Fault> {
    let mut moves: Vec<Rest> = daemon.moves(on).into_iter().map(Rest::Daemon).collect();
    moves.extend(on.host.movable().into_iter().map(Rest::Host));
    if !moves.is_empty() {
        let at = on.dice.below(moves.len());
        return Ok(moves.swap_remove(at));
    }
    check_quiet(daemon, on)?;
    let unsettled: Vec<Task> = tasks(on.bench).into_iter().filter(|task| !is_settled(task)).collect();
    if unsettled.is_empty() {
        return Ok(Rest::Over);
    }
    let is_stuck = daemon.lives.iter().any(|life| !life.is_over() && !is_alive(life.run(), on));
    if is_stuck || on.bench.read(|view| view.holds()).iter().any(|hold| hold.until.is_none()) {
        return Ok(Rest::Person);
    }
    if let Some(at) = daemon.armed() {
        Ok(Rest::Until(at))
    } else {
        let Some(first) = unsettled.first() else { return Ok(Rest::Over) };
        let why = with_reasons(daemon, std::slice::from_ref(first), on).pop().and_then(|task| task.why);
        let seen = format!("{} stays {}, and waits for {why:?}", first.id, first.status);
        Err(Fault::new(Invariant::NoStarvation, seen))
    }
}

/// Returns the fault of a calm period that does not end.
pub(super) fn unsettled_fault(daemon: &mut SimulatedDaemon, on: &mut SharedState<'_>) -> Fault {
    let unsettled: Vec<Task> = tasks(on.bench).into_iter().filter(|task| !is_settled(task)).collect();
    let reasons: Vec<String> = with_reasons(daemon, &unsettled, on)
        .into_iter()
        .map(|task| format!("{} is {}: {:?}", task.id, task.status, task.why.map(|why| why.text)))
        .collect();
    Fault::new(Invariant::NoStarvation, format!("after {REST} calm steps: {}", reasons.join("; ")))
}

fn is_alive(run: Option<kernel::RunId>, on: &SharedState<'_>) -> bool {
    run.and_then(|run| on.host.get(run)).is_some_and(|run| run.worker == WorkerLife::Alive)
}

/// Returns the tasks of the board that are not archived.
pub(super) fn tasks(bench: &Bench) -> Vec<Task> {
    bench.read(|view| view.tasks(&Filter { limit: 1000, ..Filter::default() })).tasks
}

/// Returns true if a task waits for people, or is over.
fn is_settled(task: &Task) -> bool {
    let runs = |profile: Option<&kernel::Profile>| {
        profile.is_some_and(|profile| PROFILES[..3].contains(&profile.as_str()))
    };
    match task.status {
        Status::Done | Status::Archived | Status::Triage | Status::Blocked | Status::Todo => true,
        Status::Scheduled => task.not_before.is_some_and(|at| at >= Timestamp::OPEN_END),
        Status::Ready => !runs(task.assignee.as_ref()),
        Status::Review => task.unchecked_run.is_none() && !runs(task.reviewer.as_ref()),
        Status::Running => false,
    }
}

/// Makes the next step. Returns its description.
pub(super) fn rest(
    daemon: &mut SimulatedDaemon,
    next: &Rest,
    on: &mut SharedState<'_>,
    freed: &mut Freed,
) -> String {
    match next {
        Rest::Daemon(step) => daemon.advance(*step, on, freed),
        Rest::Host(run) => {
            let clock = on.bench.clock.clone();
            on.host.advance(*run, on.dice, &clock, on.hazards)
        }
        Rest::Until(at) => {
            let by = at.since(on.bench.now()) + std::time::Duration::from_millis(1);
            on.bench.clock.advance(by);
            format!("{by:?} pass")
        }
        Rest::Person => {
            let done = make_way(on.bench);
            format!("a person makes way: {done:?}")
        }
        Rest::Over => "everything rests".to_owned(),
    }
}
