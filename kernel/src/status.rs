//! The state machine of a task: [`next`] is the only place where a transition is legal.

use serde::{Deserialize, Serialize};

use crate::clock::{Timestamp, micros};
use crate::id::RunId;
use crate::outcome::{BlockKind, Outcome};
use crate::verdict::VerdictKind;
use crate::words::words;

words! {
    /// Where a task stands.
    "status"
    Status {
        /// An idea that somebody has to specify.
        Triage => "triage",
        /// Waits for its parents.
        Todo => "todo",
        /// Waits for a time.
        Scheduled => "scheduled",
        /// May be claimed.
        Ready => "ready",
        /// A run is open.
        Running => "running",
        /// Waits for a reviewer.
        Review => "review",
        /// Waits for a person; nothing automatic leaves it.
        Blocked => "blocked",
        /// Finished.
        Done => "done",
        /// Out of sight.
        Archived => "archived",
    }
}

/// A status with the data that exists in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// See [`Status::Triage`].
    Triage,
    /// See [`Status::Todo`].
    Todo,
    /// See [`Status::Scheduled`].
    Scheduled {
        /// When it becomes ready.
        until: Timestamp,
    },
    /// See [`Status::Ready`].
    Ready,
    /// See [`Status::Running`].
    Running {
        /// The open run.
        run: RunId,
        /// What was decided about the run, if anything: it ends.
        verdict: Option<VerdictKind>,
    },
    /// See [`Status::Review`].
    Review,
    /// See [`Status::Blocked`].
    Blocked {
        /// What it waits for.
        kind: BlockKind,
    },
    /// See [`Status::Done`].
    Done,
    /// See [`Status::Archived`].
    Archived {
        /// Whether it had been finished: only then it counts as done for its children.
        finished: WasDone,
    },
}

words! {
    /// Whether an archived task had been done.
    "finished"
    WasDone {
        /// It was done.
        Yes => "yes",
        /// It was given up.
        No => "no",
    }
}

/// Where a task that nobody holds back goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Nothing stands in the way.
    Open,
    /// A parent is not done.
    Parents,
    /// Its time has not come.
    Until(#[serde(with = "micros")] Timestamp),
}

impl Gate {
    fn state(self) -> State {
        match self {
            Gate::Open => State::Ready,
            Gate::Parents => State::Todo,
            Gate::Until(until) => State::Scheduled { until },
        }
    }
}

/// How a new task enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Intake {
    /// As its parents and its time allow.
    #[default]
    Normal,
    /// Into triage.
    Triage,
    /// Blocked until a person lets it go.
    Hold,
}

/// Where a task goes when its run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// It is done.
    Done,
    /// It waits for a person.
    Blocked(BlockKind),
    /// It waits for a reviewer.
    Review,
    /// It has to be thought over.
    Triage,
    /// It is tried again as the gate allows.
    Again(Gate),
    /// It goes out of sight.
    Archived(WasDone),
}

/// What happens to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It comes to be.
    Created {
        /// How.
        intake: Intake,
        /// What holds it back.
        gate: Gate,
    },
    /// Its parents or its time changed.
    Regated {
        /// What holds it back now.
        gate: Gate,
    },
    /// A run opens.
    Started {
        /// The run.
        run: RunId,
    },
    /// The end of the open run was decided.
    Recorded {
        /// The run.
        run: RunId,
        /// What was decided.
        verdict: VerdictKind,
    },
    /// The open run is over, by proof.
    Ended {
        /// The run.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
        /// Where the task goes.
        then: Then,
    },
    /// A person finished a task that nobody runs.
    Completed,
    /// A person blocked a task that nobody runs.
    Blocked {
        /// What it waits for.
        kind: BlockKind,
    },
    /// A person lets a task go on.
    Unblocked {
        /// What holds it back still.
        gate: Gate,
    },
    /// A reviewer sends the work back.
    ChangesRequested {
        /// What holds it back still.
        gate: Gate,
    },
    /// A task in triage was specified.
    Promoted {
        /// What holds it back still.
        gate: Gate,
    },
    /// A person gave it another time.
    Scheduled {
        /// What holds it back now.
        gate: Gate,
    },
    /// A person moves it back into the queue.
    Requeued {
        /// What holds it back.
        gate: Gate,
    },
    /// A person moves it to triage.
    SentToTriage,
    /// It goes out of sight.
    Archived,
}

impl Change {
    /// Returns the verb for messages: "cannot … t_0123abcd".
    pub fn verb(self) -> &'static str {
        match self {
            Change::Created { .. } => "create",
            Change::Regated { .. } => "promote",
            Change::Started { .. } => "claim",
            Change::Recorded { .. } => "end the run of",
            Change::Ended { .. } => "finish the run of",
            Change::Completed => "complete",
            Change::Blocked { .. } => "block",
            Change::Unblocked { .. } => "unblock",
            Change::ChangesRequested { .. } => "request changes of",
            Change::Promoted { .. } => "promote",
            Change::Scheduled { .. } => "schedule",
            Change::Requeued { .. } => "requeue",
            Change::SentToTriage => "move to triage",
            Change::Archived => "archive",
        }
    }
}

impl State {
    /// Returns the bare status.
    pub fn status(self) -> Status {
        match self {
            State::Triage => Status::Triage,
            State::Todo => Status::Todo,
            State::Scheduled { .. } => Status::Scheduled,
            State::Ready => Status::Ready,
            State::Running { .. } => Status::Running,
            State::Review => Status::Review,
            State::Blocked { .. } => Status::Blocked,
            State::Done => Status::Done,
            State::Archived { .. } => Status::Archived,
        }
    }
}

/// A transition that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {} a task whose status is {}", change.verb(), from.map_or("nothing", |state| state.status().as_str()))]
pub struct IllegalChange {
    /// Where the task stood; none when it did not exist.
    pub from: Option<State>,
    /// What was asked for.
    pub change: Change,
}

/// Decides every transition: where `change` takes a task that stands at `from` (none: it does not exist yet).
///
/// # Errors
/// [`IllegalChange`] when the state machine has no such transition.
pub fn next(from: Option<State>, change: Change) -> Result<State, IllegalChange> {
    let illegal = Err(IllegalChange { from, change });
    let Some(state) = from else {
        return match change {
            Change::Created { intake, gate } => Ok(match intake {
                Intake::Normal => gate.state(),
                Intake::Triage => State::Triage,
                Intake::Hold => State::Blocked { kind: BlockKind::NeedsInput },
            }),
            Change::Regated { .. }
            | Change::Started { .. }
            | Change::Recorded { .. }
            | Change::Ended { .. }
            | Change::Completed
            | Change::Blocked { .. }
            | Change::Unblocked { .. }
            | Change::ChangesRequested { .. }
            | Change::Promoted { .. }
            | Change::Scheduled { .. }
            | Change::Requeued { .. }
            | Change::SentToTriage
            | Change::Archived => illegal,
        };
    };
    match change {
        Change::Created { .. } => illegal,
        Change::Regated { gate } => match state {
            State::Todo | State::Scheduled { .. } | State::Ready => Ok(gate.state()),
            State::Triage
            | State::Running { .. }
            | State::Review
            | State::Blocked { .. }
            | State::Done
            | State::Archived { .. } => illegal,
        },
        Change::Started { run } => match state {
            State::Ready | State::Review => Ok(State::Running { run, verdict: None }),
            State::Triage
            | State::Todo
            | State::Scheduled { .. }
            | State::Running { .. }
            | State::Blocked { .. }
            | State::Done
            | State::Archived { .. } => illegal,
        },
        Change::Recorded { run, verdict } => match state {
            State::Running { run: open, verdict: before } if open == run && verdict.may_replace(before) => {
                Ok(State::Running { run, verdict: Some(verdict) })
            }
            State::Running { .. }
            | State::Triage
            | State::Todo
            | State::Scheduled { .. }
            | State::Ready
            | State::Review
            | State::Blocked { .. }
            | State::Done
            | State::Archived { .. } => illegal,
        },
        Change::Ended { run, outcome, then } => match state {
            State::Running { run: open, .. } if open == run && outcome.allows(then) => Ok(match then {
                Then::Done => State::Done,
                Then::Blocked(kind) => State::Blocked { kind },
                Then::Review => State::Review,
                Then::Triage => State::Triage,
                Then::Again(gate) => gate.state(),
                Then::Archived(finished) => State::Archived { finished },
            }),
            State::Running { .. }
            | State::Triage
            | State::Todo
            | State::Scheduled { .. }
            | State::Ready
            | State::Review
            | State::Blocked { .. }
            | State::Done
            | State::Archived { .. } => illegal,
        },
        Change::Completed => match state {
            State::Triage
            | State::Todo
            | State::Scheduled { .. }
            | State::Ready
            | State::Review
            | State::Blocked { .. } => Ok(State::Done),
            State::Running { .. } | State::Done | State::Archived { .. } => illegal,
        },
        Change::Blocked { kind } => match state {
            State::Triage | State::Todo | State::Scheduled { .. } | State::Ready | State::Review => {
                Ok(State::Blocked { kind })
            }
            State::Running { .. } | State::Blocked { .. } | State::Done | State::Archived { .. } => illegal,
        },
        Change::Unblocked { gate } => match state {
            State::Blocked { .. } | State::Scheduled { .. } => Ok(gate.state()),
            State::Triage
            | State::Todo
            | State::Ready
            | State::Running { .. }
            | State::Review
            | State::Done
            | State::Archived { .. } => illegal,
        },
        Change::ChangesRequested { gate } => match state {
            State::Review => Ok(gate.state()),
            State::Triage
            | State::Todo
            | State::Scheduled { .. }
            | State::Ready
            | State::Running { .. }
            | State::Blocked { .. }
            | State::Done
            | State::Archived { .. } => illegal,
        },
        Change::Promoted { gate } => match state {
            State::Triage => Ok(gate.state()),
            State::Todo
            | State::Scheduled { .. }
            | State::Ready
            | State::Running { .. }
            | State::Review
            | State::Blocked { .. }
            | State::Done
            | State::Archived { .. } => illegal,
        },
        Change::Scheduled { gate } => match state {
            State::Todo | State::Ready | State::Scheduled { .. } | State::Blocked { .. } => Ok(gate.state()),
            State::Triage | State::Running { .. } | State::Review | State::Done | State::Archived { .. } => {
                illegal
            }
        },
        Change::Requeued { gate } => match state {
            State::Triage
            | State::Todo
            | State::Scheduled { .. }
            | State::Ready
            | State::Review
            | State::Blocked { .. }
            | State::Done => Ok(gate.state()),
            State::Running { .. } | State::Archived { .. } => illegal,
        },
        Change::SentToTriage => match state {
            State::Todo
            | State::Scheduled { .. }
            | State::Ready
            | State::Review
            | State::Blocked { .. }
            | State::Done => Ok(State::Triage),
            State::Triage | State::Running { .. } | State::Archived { .. } => illegal,
        },
        Change::Archived => match state {
            State::Done => Ok(State::Archived { finished: WasDone::Yes }),
            State::Triage
            | State::Todo
            | State::Scheduled { .. }
            | State::Ready
            | State::Review
            | State::Blocked { .. } => Ok(State::Archived { finished: WasDone::No }),
            State::Running { .. } | State::Archived { .. } => illegal,
        },
    }
}
