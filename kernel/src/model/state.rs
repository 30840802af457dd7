//! State machine of a task: states with their data, gates and changes.

use serde::{Deserialize, Serialize};

use crate::model::clock::{Timestamp, micros};
use crate::model::id::RunId;
use crate::model::outcome::{BlockKind, Outcome};
use crate::model::status::{Status, WasDone};
use crate::model::verdict::VerdictKind;

/// Status of a task, with the data that exists in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// See [`Status::Triage`].
    Triage,
    /// See [`Status::Todo`].
    Todo,
    /// See [`Status::Scheduled`].
    Scheduled {
        #[serde(with = "micros")]
        until: Timestamp,
    },
    /// See [`Status::Ready`].
    Ready,
    /// See [`Status::Running`].
    Running {
        run: RunId,
        /// Decision about the run, if there is one: the run is ending.
        verdict: Option<VerdictKind>,
    },
    /// See [`Status::Review`].
    Review,
    /// The work was handed over and waits for its check. The status is [`Status::Review`] as well.
    Checking {
        /// Run that handed the work over.
        of: RunId,
    },
    /// See [`Status::Blocked`].
    Blocked { kind: BlockKind },
    /// See [`Status::Done`].
    Done,
    /// See [`Status::Archived`].
    Archived {
        /// Tells a finished task from an abandoned task. Only a finished task counts as done for its children.
        finished: WasDone,
    },
}

/// Condition that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// No condition.
    Open,
    /// All parents are done.
    Parents,
    /// A time comes.
    Until(#[serde(with = "micros")] Timestamp),
    /// A reviewer has looked at the work.
    Review,
    /// The check of the work that this run handed over has passed.
    Check(RunId),
    /// An approver lets the task start.
    Approval,
}

/// State in which a task is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InitialState {
    /// Ready, scheduled or waiting, as its parents and its time allow.
    #[default]
    Normal,
    Triage,
    /// Blocked until a person lets it continue.
    #[serde(rename = "hold")]
    Blocked,
}

/// Destination of a task when its run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    Done,
    /// The task waits for a person.
    Blocked(BlockKind),
    /// The work waits for a reviewer.
    Review,
    /// A person or a profile has to specify the task.
    Triage,
    /// The task is tried again as the gate allows.
    Again(Gate),
    Archived(WasDone),
}

/// Transition that a task is asked to make: the input of [`next`](crate::next).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A new task enters the board.
    Created {
        #[serde(rename = "intake")]
        initial: InitialState,
        gate: Gate,
    },
    /// The parents or the time of the task changed.
    // The logs of existing boards have this word.
    #[serde(rename = "regated")]
    Reevaluated { gate: Gate },
    /// A run opens.
    Started { run: RunId },
    /// The end of the open run is decided.
    Recorded { run: RunId, verdict: VerdictKind },
    /// The open run is over, by proof.
    Ended { run: RunId, outcome: Outcome, then: Then },
    /// A person finishes a task that has no open run.
    Completed,
    /// A person did the work of a task that has no open run, and asks for a review.
    ReviewRequested,
    /// The approver lets the task continue.
    Approved { gate: Gate },
    /// A person blocks a task that has no open run.
    Blocked { kind: BlockKind },
    /// A person lets the task go on.
    Unblocked { gate: Gate },
    /// A reviewer sends the work back.
    ChangesRequested { gate: Gate },
    /// A person lets the task leave triage, or start at once.
    Promoted { gate: Gate },
    /// A person gives the task another time.
    Scheduled { gate: Gate },
    /// A person moves the task back into the queue.
    Requeued { gate: Gate },
    /// A person moves the task to triage.
    SentToTriage,
    /// The task is moved to the archive.
    Archived,
    /// A person wants finished work to be done again.
    Reopened { gate: Gate },
    /// A person brings the task back from the archive.
    Unarchived { then: Then },
}

impl Change {
    /// Returns the verb for messages: "cannot claim …".
    pub fn verb(self) -> &'static str {
        match self {
            Change::Created { .. } => "create",
            Change::Started { .. } => "claim",
            Change::Recorded { .. } => "end the run of",
            Change::Ended { .. } => "finish the run of",
            Change::Completed => "complete",
            Change::ReviewRequested => "request a review of",
            Change::Approved { .. } => "approve",
            Change::Blocked { .. } => "block",
            Change::Unblocked { .. } => "unblock",
            Change::ChangesRequested { .. } => "request changes of",
            Change::Reevaluated { .. } | Change::Promoted { .. } => "promote",
            Change::Scheduled { .. } => "schedule",
            Change::Requeued { .. } => "requeue",
            Change::SentToTriage => "move to triage",
            Change::Archived => "archive",
            Change::Reopened { .. } => "reopen",
            Change::Unarchived { .. } => "unarchive",
        }
    }
}

impl State {
    /// Returns true if a task in this state counts as done for its children.
    pub fn is_finished(self) -> bool {
        matches!(self, State::Done | State::Archived { finished: WasDone::Yes })
    }

    /// Returns the status without its data.
    pub fn status(self) -> Status {
        match self {
            State::Triage => Status::Triage,
            State::Todo => Status::Todo,
            State::Scheduled { .. } => Status::Scheduled,
            State::Ready => Status::Ready,
            State::Running { .. } => Status::Running,
            State::Review | State::Checking { .. } => Status::Review,
            State::Blocked { .. } => Status::Blocked,
            State::Done => Status::Done,
            State::Archived { .. } => Status::Archived,
        }
    }
}

impl Then {
    /// Returns true if a run with this outcome may send its task there.
    pub(crate) fn follows(self, outcome: Outcome) -> bool {
        match outcome {
            // Completed work that waits for a check is not done yet. For such a task in the archive, the state decides if
            // it was done.
            Outcome::Completed => {
                matches!(self, Then::Done | Then::Archived(_) | Then::Again(Gate::Check(_)))
            }
            Outcome::Blocked => matches!(self, Then::Blocked(_) | Then::Triage | Then::Again(_)),
            Outcome::ReviewRequested => matches!(self, Then::Review | Then::Again(Gate::Check(_))),
            Outcome::CheckPassed => matches!(self, Then::Done | Then::Review),
            Outcome::CheckFailed => {
                matches!(self, Then::Again(_) | Then::Blocked(BlockKind::GaveUp))
            }
            Outcome::Approved => matches!(self, Then::Done | Then::Again(Gate::Check(_))),
            Outcome::ChangesRequested => {
                matches!(self, Then::Again(_) | Then::Blocked(BlockKind::NeedsInput))
            }
            Outcome::Cancelled => {
                matches!(self, Then::Archived(WasDone::No) | Then::Blocked(_))
            }
            Outcome::Reclaimed => matches!(self, Then::Again(_) | Then::Triage | Then::Review),
            Outcome::Preempted | Outcome::RateLimited => matches!(self, Then::Again(_) | Then::Review),
            Outcome::Crashed
            | Outcome::TimedOut
            | Outcome::Stalled
            | Outcome::OutOfMemory
            | Outcome::Unreported
            | Outcome::Lost
            | Outcome::SpawnFailed => {
                matches!(self, Then::Again(_) | Then::Blocked(BlockKind::GaveUp) | Then::Review)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_change_in_the_log_stay_those_that_were_written() {
        let created = Change::Created { initial: InitialState::Blocked, gate: Gate::Open };
        for (change, words) in [
            (created, r#"{"created":{"intake":"hold","gate":"open"}}"#),
            (Change::Reevaluated { gate: Gate::Parents }, r#"{"regated":{"gate":"parents"}}"#),
        ] {
            assert_eq!(serde_json::to_string(&change).unwrap(), words);
            assert_eq!(serde_json::from_str::<Change>(words).unwrap(), change);
        }
    }
}
