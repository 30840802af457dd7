//! Starting point of a worktree's branch.

use serde::{Deserialize, Serialize};

/// Starting point of a new branch. An existing branch is used as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    #[default]
    Head,
    /// A local branch, such as a parent task's.
    Branch(String),
}
