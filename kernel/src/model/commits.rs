//! Commits of a task's work in git: handling of the changes that its runs leave uncommitted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::words::words;

words! {
    /// Handling of the changes that a run leaves uncommitted in its worktree.
    "commit mode"
    CommitMode {
        /// The supervisor commits them.
        Auto => "auto",
        /// The changes block the task.
        Require => "require",
        /// The changes stay as they are.
        No => "no",
    }
}

/// Commits of a task's work in git.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Commits {
    /// Handling of uncommitted changes when a run hands its work over; absent means the default of its lane.
    #[serde(rename = "commit", default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<CommitMode>,
}
