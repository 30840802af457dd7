//! Record of a task that the diagnosis examines.

use crate::model::clock::Timestamp;
use crate::model::id::{Profile, TaskId};
use crate::model::outcome::BlockKind;
use crate::model::status::Status;

/// Task that the diagnosis examines, with the fields that its rules read.
pub(crate) struct ExaminedTask {
    pub(crate) id: TaskId,
    pub(crate) title: String,
    pub(crate) status: Status,
    pub(crate) assignee: Option<Profile>,
    pub(crate) failures: u32,
    /// Number of failed checks since the task was last tried anew.
    pub(crate) failed_checks: u32,
    pub(crate) error: Option<String>,
    pub(crate) block_kind: Option<BlockKind>,
    pub(crate) block_reason: Option<String>,
    pub(crate) nonspawnable: Option<String>,
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) mission: Option<String>,
    pub(crate) was_blocked: bool,
    /// Time of the last change of status.
    pub(crate) since: Timestamp,
}

impl ExaminedTask {
    /// Returns the mission that the task belongs to, which may be the task itself.
    pub(crate) fn mission(&self) -> &str {
        self.mission.as_deref().unwrap_or(self.id.as_str())
    }

    /// Returns true if failures have used up the attempts: nothing tries the task again automatically.
    pub(crate) fn gave_up(&self) -> bool {
        self.status == Status::Blocked && self.block_kind == Some(BlockKind::GaveUp)
    }
}
