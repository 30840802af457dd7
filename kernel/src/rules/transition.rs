//! The state machine of a task: [`next`] is the only place where a transition is legal.

use crate::model::id::RunId;
use crate::model::outcome::{BlockKind, Outcome};
use crate::model::state::{Change, Gate, InitialState, State, Then};
use crate::model::status::WasDone;
use crate::model::verdict::VerdictKind;

/// Transition that the state machine does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {} a task whose status is {}", change.verb(), from.map_or("nothing", |state| state.status().as_str()))]
pub struct IllegalChange {
    /// State of the task; none for a task that does not exist.
    pub from: Option<State>,
    pub change: Change,
}

/// Decides every transition: returns the state after `change` in the state `from`; none means that the task does not
/// exist yet.
///
/// # Errors
/// [`IllegalChange`] when the state machine has no such transition.
pub fn next(from: Option<State>, change: Change) -> Result<State, IllegalChange> {
    let to = match from {
        None => enter(change),
        Some(state) => step(state, change),
    };
    to.ok_or(IllegalChange { from, change })
}

/// Returns the first state of a new task.
fn enter(change: Change) -> Option<State> {
    let Change::Created { initial, gate } = change else { return None };
    Some(match initial {
        InitialState::Normal => at(gate),
        InitialState::Triage => State::Triage,
        InitialState::Blocked => State::Blocked { kind: BlockKind::NeedsInput },
    })
}

fn step(state: State, change: Change) -> Option<State> {
    match change {
        Change::Created { .. } => None,
        Change::Started { run } => start(state, run),
        Change::Recorded { run, verdict } => record(state, run, verdict),
        Change::Ended { run, outcome, then } => end(state, run, outcome, then),
        Change::Reevaluated { gate } => in_queue(state).then_some(at(gate)),
        Change::Completed => free(state).then_some(State::Done),
        Change::ReviewRequested => (free(state) && !in_review(state)).then_some(State::Review),
        Change::Approved { gate } => awaits_approval(state).then_some(at(gate)),
        Change::Blocked { kind } => {
            (unfinished(state) && blocked(state).is_none()).then_some(State::Blocked { kind })
        }
        Change::Unblocked { gate } => (released(state) || scheduled(state)).then_some(at(gate)),
        Change::ChangesRequested { gate } => in_review(state).then_some(at(gate)),
        Change::Promoted { gate } => (released(state)
            || matches!(state, State::Triage | State::Todo | State::Scheduled { .. }))
        .then_some(at(gate)),
        Change::Scheduled { gate } => (in_queue(state) || released(state)).then_some(at(gate)),
        Change::Requeued { gate } => (free(state) || state == State::Done).then_some(at(gate)),
        Change::SentToTriage => {
            ((unfinished(state) && state != State::Triage) || state == State::Done).then_some(State::Triage)
        }
        Change::Archived => archive(state),
        Change::Reopened { gate } => (state == State::Done).then_some(at(gate)),
        Change::Unarchived { then } => unarchive(state, then),
    }
}

/// Returns the state of a task that waits only for its gate.
fn at(gate: Gate) -> State {
    match gate {
        Gate::Open => State::Ready,
        Gate::Parents => State::Todo,
        Gate::Until(until) => State::Scheduled { until },
        Gate::Review => State::Review,
        Gate::Check(of) => State::Checking { of },
        Gate::Approval => State::Blocked { kind: BlockKind::Approval },
    }
}

fn start(state: State, run: RunId) -> Option<State> {
    matches!(state, State::Ready | State::Review | State::Checking { .. })
        .then_some(State::Running { run, verdict: None })
}

fn record(state: State, run: RunId, verdict: VerdictKind) -> Option<State> {
    let (open, before) = running(state)?;
    (open == run && verdict.may_replace(before)).then_some(State::Running { run, verdict: Some(verdict) })
}

fn end(state: State, run: RunId, outcome: Outcome, then: Then) -> Option<State> {
    let (open, _) = running(state)?;
    (open == run && then.follows(outcome)).then(|| reached(then))
}

/// Returns the state at a destination.
fn reached(then: Then) -> State {
    match then {
        Then::Done => State::Done,
        Then::Blocked(kind) => State::Blocked { kind },
        Then::Review => State::Review,
        Then::Triage => State::Triage,
        Then::Again(gate) => at(gate),
        Then::Archived(finished) => State::Archived { finished },
    }
}

fn archive(state: State) -> Option<State> {
    if state == State::Done {
        Some(State::Archived { finished: WasDone::Yes })
    } else {
        unfinished(state).then_some(State::Archived { finished: WasDone::No })
    }
}

/// Allows a return to `done` for finished work only, and to any other state for unfinished work only.
fn unarchive(state: State, then: Then) -> Option<State> {
    let State::Archived { finished } = state else { return None };
    let is_allowed = match then {
        Then::Done => finished == WasDone::Yes,
        Then::Blocked(_) | Then::Review | Then::Triage | Then::Again(_) => finished == WasDone::No,
        Then::Archived(_) => false,
    };
    is_allowed.then(|| reached(then))
}

fn running(state: State) -> Option<(RunId, Option<VerdictKind>)> {
    if let State::Running { run, verdict } = state { Some((run, verdict)) } else { None }
}

fn blocked(state: State) -> Option<BlockKind> {
    if let State::Blocked { kind } = state { Some(kind) } else { None }
}

/// Returns true if only an approval, triage or the archive takes the task out of its state.
fn awaits_approval(state: State) -> bool {
    blocked(state) == Some(BlockKind::Approval)
}

/// Returns true if the task is blocked and a person who is not its approver may let it go on.
fn released(state: State) -> bool {
    blocked(state).is_some_and(|kind| kind != BlockKind::Approval)
}

/// Returns true if the task is not over, has no open run, and lacks no approval.
fn free(state: State) -> bool {
    unfinished(state) && !awaits_approval(state)
}

fn scheduled(state: State) -> bool {
    matches!(state, State::Scheduled { .. })
}

/// Returns true if only the parents or the time decide about the state.
pub(crate) fn in_queue(state: State) -> bool {
    matches!(state, State::Todo | State::Scheduled { .. } | State::Ready)
}

/// Returns true if the handed-over work waits for a reviewer or a check.
fn in_review(state: State) -> bool {
    matches!(state, State::Review | State::Checking { .. })
}

/// Returns true if the task is not over and has no open run.
fn unfinished(state: State) -> bool {
    in_queue(state) || in_review(state) || matches!(state, State::Triage | State::Blocked { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::model::status::Status;

    const RUN: RunId = RunId(7);

    fn states() -> Vec<(&'static str, Option<State>)> {
        vec![
            ("nothing", None),
            ("triage", Some(State::Triage)),
            ("todo", Some(State::Todo)),
            ("scheduled", Some(State::Scheduled { until: Timestamp::from_secs(9) })),
            ("ready", Some(State::Ready)),
            ("running", Some(State::Running { run: RUN, verdict: None })),
            ("ending", Some(State::Running { run: RUN, verdict: Some(VerdictKind::Complete) })),
            ("review", Some(State::Review)),
            ("checking", Some(State::Checking { of: RUN })),
            ("blocked", Some(State::Blocked { kind: BlockKind::Transient })),
            ("approval", Some(State::Blocked { kind: BlockKind::Approval })),
            ("done", Some(State::Done)),
            ("archived", Some(State::Archived { finished: WasDone::No })),
            ("finished", Some(State::Archived { finished: WasDone::Yes })),
        ]
    }

    /// Table of all changes: the states in which each is possible, and the status that it leads to.
    fn table() -> Vec<(Change, Vec<&'static str>, Status)> {
        let gate = Gate::Open;
        let check = Gate::Check(RUN);
        let ended = |outcome, then| Change::Ended { run: RUN, outcome, then };
        let recorded = |verdict| Change::Recorded { run: RUN, verdict };
        let idle = &["triage", "todo", "scheduled", "ready", "review", "checking", "blocked"][..];
        let queue = &["todo", "scheduled", "ready"][..];
        let open = &["running", "ending"][..];
        vec![
            (Change::Created { initial: InitialState::Normal, gate }, vec!["nothing"], Status::Ready),
            (
                Change::Created { initial: InitialState::Normal, gate: Gate::Parents },
                vec!["nothing"],
                Status::Todo,
            ),
            (Change::Created { initial: InitialState::Triage, gate }, vec!["nothing"], Status::Triage),
            (Change::Created { initial: InitialState::Blocked, gate }, vec!["nothing"], Status::Blocked),
            (Change::Reevaluated { gate }, queue.to_vec(), Status::Ready),
            (Change::Reevaluated { gate: Gate::Parents }, queue.to_vec(), Status::Todo),
            (
                Change::Reevaluated { gate: Gate::Until(Timestamp::from_secs(3)) },
                queue.to_vec(),
                Status::Scheduled,
            ),
            (Change::Started { run: RUN }, vec!["ready", "review", "checking"], Status::Running),
            (recorded(VerdictKind::Complete), vec!["running"], Status::Running),
            (recorded(VerdictKind::Archive), open.to_vec(), Status::Running),
            (Change::Recorded { run: RunId(8), verdict: VerdictKind::Block }, vec![], Status::Running),
            (ended(Outcome::Completed, Then::Done), open.to_vec(), Status::Done),
            (ended(Outcome::Crashed, Then::Again(gate)), open.to_vec(), Status::Ready),
            (ended(Outcome::Crashed, Then::Blocked(BlockKind::GaveUp)), open.to_vec(), Status::Blocked),
            (ended(Outcome::Crashed, Then::Done), vec![], Status::Done),
            (ended(Outcome::Blocked, Then::Done), vec![], Status::Done),
            (ended(Outcome::Completed, Then::Again(gate)), vec![], Status::Ready),
            (ended(Outcome::ReviewRequested, Then::Review), open.to_vec(), Status::Review),
            (
                Change::Ended { run: RunId(8), outcome: Outcome::Completed, then: Then::Done },
                vec![],
                Status::Done,
            ),
            (ended(Outcome::Approved, Then::Done), open.to_vec(), Status::Done),
            (ended(Outcome::Approved, Then::Again(gate)), vec![], Status::Ready),
            (ended(Outcome::Approved, Then::Again(check)), open.to_vec(), Status::Review),
            (ended(Outcome::ChangesRequested, Then::Again(gate)), open.to_vec(), Status::Ready),
            (ended(Outcome::ChangesRequested, Then::Done), vec![], Status::Done),
            (ended(Outcome::Completed, Then::Again(check)), open.to_vec(), Status::Review),
            (ended(Outcome::ReviewRequested, Then::Again(check)), open.to_vec(), Status::Review),
            (ended(Outcome::Lost, Then::Again(check)), open.to_vec(), Status::Review),
            (ended(Outcome::CheckPassed, Then::Done), open.to_vec(), Status::Done),
            (ended(Outcome::CheckPassed, Then::Review), open.to_vec(), Status::Review),
            (ended(Outcome::CheckPassed, Then::Again(gate)), vec![], Status::Ready),
            (ended(Outcome::CheckFailed, Then::Again(gate)), open.to_vec(), Status::Ready),
            (ended(Outcome::CheckFailed, Then::Done), vec![], Status::Done),
            (Change::Unblocked { gate: check }, vec!["blocked", "scheduled"], Status::Review),
            (recorded(VerdictKind::Approve), vec!["running"], Status::Running),
            (recorded(VerdictKind::RequestChanges), vec!["running"], Status::Running),
            (Change::Completed, idle.to_vec(), Status::Done),
            (
                Change::ReviewRequested,
                vec!["triage", "todo", "scheduled", "ready", "blocked"],
                Status::Review,
            ),
            (Change::Approved { gate }, vec!["approval"], Status::Ready),
            (Change::Approved { gate: Gate::Parents }, vec!["approval"], Status::Todo),
            (Change::Reevaluated { gate: Gate::Approval }, queue.to_vec(), Status::Blocked),
            (
                Change::Created { initial: InitialState::Normal, gate: Gate::Approval },
                vec!["nothing"],
                Status::Blocked,
            ),
            (
                Change::Blocked { kind: BlockKind::NeedsInput },
                vec!["triage", "todo", "scheduled", "ready", "review", "checking"],
                Status::Blocked,
            ),
            (Change::Unblocked { gate }, vec!["blocked", "scheduled"], Status::Ready),
            (Change::Unblocked { gate: Gate::Review }, vec!["blocked", "scheduled"], Status::Review),
            (Change::ChangesRequested { gate }, vec!["review", "checking"], Status::Ready),
            (Change::Promoted { gate }, vec!["triage", "todo", "scheduled", "blocked"], Status::Ready),
            (Change::Scheduled { gate }, vec!["todo", "scheduled", "ready", "blocked"], Status::Ready),
            (Change::Requeued { gate }, [idle, &["done"]].concat(), Status::Ready),
            (
                Change::SentToTriage,
                vec!["todo", "scheduled", "ready", "review", "checking", "blocked", "approval", "done"],
                Status::Triage,
            ),
            (Change::Archived, [idle, &["approval", "done"]].concat(), Status::Archived),
            (Change::Reopened { gate }, vec!["done"], Status::Ready),
            (Change::Reopened { gate: Gate::Parents }, vec!["done"], Status::Todo),
            (Change::Unarchived { then: Then::Done }, vec!["finished"], Status::Done),
            (Change::Unarchived { then: Then::Again(gate) }, vec!["archived"], Status::Ready),
            (Change::Unarchived { then: Then::Triage }, vec!["archived"], Status::Triage),
            (Change::Unarchived { then: Then::Review }, vec!["archived"], Status::Review),
            (
                Change::Unarchived { then: Then::Blocked(BlockKind::Transient) },
                vec!["archived"],
                Status::Blocked,
            ),
            (Change::Unarchived { then: Then::Archived(WasDone::No) }, vec![], Status::Archived),
        ]
    }

    /// A change is refused in every state that its row does not list.
    #[test]
    fn every_pair_of_status_and_change_is_decided_as_the_table_says() {
        for (change, from, to) in table() {
            for (name, state) in states() {
                let got = next(state, change).map(State::status);
                if from.contains(&name) {
                    assert_eq!(got.ok(), Some(to), "{change:?} from {name}");
                } else {
                    assert!(got.is_err(), "{change:?} from {name} went to {got:?}");
                }
            }
        }
    }

    #[test]
    fn only_a_task_that_was_done_counts_as_done_in_the_archive() {
        let archived = |state| next(Some(state), Change::Archived).unwrap();
        assert_eq!(archived(State::Done), State::Archived { finished: WasDone::Yes });
        assert_eq!(archived(State::Ready), State::Archived { finished: WasDone::No });
    }
}
