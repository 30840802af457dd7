//! Where a task stands with all that this says, what it waits for, and what can happen to it.

use serde::{Deserialize, Serialize};

use crate::model::clock::{Timestamp, micros};
use crate::model::id::RunId;
use crate::model::outcome::{BlockKind, Outcome};
use crate::model::status::{Status, WasDone};
use crate::model::verdict::VerdictKind;

/// A status with the data that exists in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the name of a field says what it is")]
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
        /// What was decided about the run, if anything: it ends.
        verdict: Option<VerdictKind>,
    },
    /// See [`Status::Review`].
    Review,
    /// Its work was handed over and waits for its check; in [`Status::Review`], too.
    Checking {
        /// The run that handed the work over.
        of: RunId,
    },
    /// See [`Status::Blocked`].
    Blocked { kind: BlockKind },
    /// See [`Status::Done`].
    Done,
    /// See [`Status::Archived`].
    Archived {
        /// Whether it had been finished: only then it counts as done for its children.
        finished: WasDone,
    },
}

/// What a task waits for, if for anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Nothing stands in the way.
    Open,
    /// A parent is not done.
    Parents,
    /// Its time has not come.
    Until(#[serde(with = "micros")] Timestamp),
    /// Its work waits for a reviewer.
    Review,
    /// The work that this run handed over waits for its check.
    Check(RunId),
    /// Somebody has to approve it first.
    Approval,
}

/// The state in which a task is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InitialState {
    /// As its parents and its time allow.
    #[default]
    Normal,
    /// Into triage.
    Triage,
    /// Blocked until a person lets it continue.
    #[serde(rename = "hold")]
    Blocked,
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
    /// A person or a profile has to specify it.
    Triage,
    /// It is tried again as the gate allows.
    Again(Gate),
    /// It goes out of sight.
    Archived(WasDone),
}

/// What happens to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the name of a field says what it is")]
pub enum Change {
    /// It comes to be.
    Created {
        #[serde(rename = "intake")]
        initial: InitialState,
        gate: Gate,
    },
    /// Its parents or its time changed.
    // The logs of boards have this word, and stay readable.
    #[serde(rename = "regated")]
    Reevaluated { gate: Gate },
    /// A run opens.
    Started { run: RunId },
    /// The end of the open run was decided.
    Recorded { run: RunId, verdict: VerdictKind },
    /// The open run is over, by proof.
    Ended { run: RunId, outcome: Outcome, then: Then },
    /// A person finished a task that nobody runs.
    Completed,
    /// A person did the work of a task that nobody runs, and asks for a review of it.
    ReviewRequested,
    /// The approver lets a task continue.
    Approved { gate: Gate },
    /// A person blocked a task that nobody runs.
    Blocked { kind: BlockKind },
    /// A person lets a task go on.
    Unblocked { gate: Gate },
    /// A reviewer sends the work back.
    ChangesRequested { gate: Gate },
    /// A person lets it leave triage, or go on at once.
    Promoted { gate: Gate },
    /// A person gave it another time.
    Scheduled { gate: Gate },
    /// A person moves it back into the queue.
    Requeued { gate: Gate },
    /// A person moves it to triage.
    SentToTriage,
    /// It goes out of sight.
    Archived,
    /// A person wants what is done to be done again.
    Reopened { gate: Gate },
    /// A person brings it back from the archive.
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
    /// Returns whether a task in it counts as done for its children.
    pub fn is_finished(self) -> bool {
        matches!(self, State::Done | State::Archived { finished: WasDone::Yes })
    }

    /// Returns the bare status.
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
    /// Returns whether a run with this outcome may send its task there.
    pub(crate) fn follows(self, outcome: Outcome) -> bool {
        match outcome {
            // What waits for a check is not done yet, and is archived as what it is.
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
