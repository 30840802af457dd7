//! The state of a task in the words of the protocol.

use kernel::{BlockKind, Status, Task};

/// The states of A2A 1.0, section 4.1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
}

impl State {
    /// Where a task stands. What waits for the sender's words is `InputRequired`; what waits for something that a person of this root has to allow
    /// or give is `AuthRequired`.
    pub(super) fn of(task: &Task) -> Self {
        match task.status {
            Status::Triage | Status::Todo | Status::Scheduled | Status::Ready => State::Submitted,
            // A review is work of this root.
            Status::Running | Status::Review => State::Working,
            Status::Blocked => match task.block_kind {
                Some(BlockKind::NeedsInput) | None => State::InputRequired,
                Some(BlockKind::Capability | BlockKind::Approval | BlockKind::Budget) => State::AuthRequired,
                Some(BlockKind::Transient | BlockKind::Dependency) => State::Working,
                Some(BlockKind::GaveUp) => State::Failed,
            },
            Status::Done => State::Completed,
            Status::Archived if task.completed_at.is_some() => State::Completed,
            Status::Archived => State::Canceled,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            State::Submitted => "TASK_STATE_SUBMITTED",
            State::Working => "TASK_STATE_WORKING",
            State::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            State::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
            State::Completed => "TASK_STATE_COMPLETED",
            State::Failed => "TASK_STATE_FAILED",
            State::Canceled => "TASK_STATE_CANCELED",
            State::Rejected => "TASK_STATE_REJECTED",
        }
    }

    /// Whether nothing comes after it.
    pub(super) fn is_over(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Canceled | State::Rejected)
    }

    /// Whether a stream ends there: it is over, or waits for somebody.
    pub(super) fn rests(self) -> bool {
        self.is_over() || matches!(self, State::InputRequired | State::AuthRequired)
    }
}
