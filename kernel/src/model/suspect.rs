//! A task that something may be wrong about.

use crate::model::clock::Timestamp;
use crate::model::id::{Profile, TaskId};
use crate::model::outcome::BlockKind;
use crate::model::status::Status;

/// A task that something may be wrong about.
pub(crate) struct Suspect {
    pub(crate) id: TaskId,
    pub(crate) title: String,
    pub(crate) status: Status,
    pub(crate) assignee: Option<Profile>,
    pub(crate) failures: u32,
    /// Checks that failed since it was last tried anew.
    pub(crate) failed_checks: u32,
    pub(crate) error: Option<String>,
    pub(crate) block_kind: Option<BlockKind>,
    pub(crate) block_reason: Option<String>,
    pub(crate) nonspawnable: Option<String>,
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) mission: Option<String>,
    pub(crate) was_blocked: bool,
    /// When it came to stand where it stands.
    pub(crate) since: Timestamp,
}

impl Suspect {
    /// The mission that it belongs to.
    pub(crate) fn mission(&self) -> &str {
        self.mission.as_deref().unwrap_or(self.id.as_str())
    }

    /// Whether its failures have used up its attempts: nothing tries it again by itself.
    pub(crate) fn gave_up(&self) -> bool {
        self.status == Status::Blocked && self.block_kind == Some(BlockKind::GaveUp)
    }
}
