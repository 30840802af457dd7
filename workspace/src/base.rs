//! What the branch of a worktree starts from.

use serde::{Deserialize, Serialize};

/// Where a new branch starts; a branch that is there is taken as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// The repository's HEAD.
    #[default]
    Head,
    /// A local branch, such as that of a parent task.
    Branch(String),
}
