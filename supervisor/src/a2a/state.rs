//! The state of a task in the words of the protocol.

use kernel::{BlockKind, Status, Task};

pub(super) use crate::a2a_wire::State;

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
}
