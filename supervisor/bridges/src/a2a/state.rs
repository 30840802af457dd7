//! Maps the status of a task to the states of the protocol.

use kernel::{BlockKind, Status, Task};

pub(super) use base::a2a_wire::State;

/// Returns the state of a task. `InputRequired` waits for the sender; `AuthRequired` waits for a person of this
/// root.
pub(super) fn state_of(task: &Task) -> State {
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
