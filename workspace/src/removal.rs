//! Outcome of a removal.

use serde::{Deserialize, Serialize};

/// Extent to which a tree or a worktree was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// The tree, or the worktree, was removed.
    Removed,
    /// The directory was emptied. A user who may write the directory above it has to remove it.
    Emptied,
    /// Nothing existed at the path.
    Absent,
}
