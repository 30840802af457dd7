//! Report about the changes that a run left uncommitted in its worktree.

use serde::{Deserialize, Serialize};

/// Limit on the named paths.
pub(crate) const NAMED: usize = 50;

/// Changes that a run left uncommitted, and the commit that the supervisor made of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncommitted {
    /// Commit that the supervisor made, in hex; none if it made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Number of paths in that commit.
    #[serde(default)]
    pub committed: usize,
    /// First paths that are still uncommitted, ordered by path.
    #[serde(default)]
    pub left: Vec<LeftPath>,
    /// Number of uncommitted paths that are not named.
    #[serde(default)]
    pub more: usize,
    /// Number of commits on the branch that the repository's own HEAD does not have.
    #[serde(default)]
    pub ahead: usize,
    /// Reason why nothing could be committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindrance: Option<String>,
}

impl Uncommitted {
    /// Returns the number of paths that are still uncommitted.
    pub fn count(&self) -> usize {
        self.left.len().saturating_add(self.more)
    }

    /// Returns true if no changes are left, and the supervisor committed none.
    pub fn is_empty(&self) -> bool {
        self.commit.is_none() && !self.is_unfinished()
    }

    /// Returns true if the worktree may have changes that are not on the branch.
    pub fn is_unfinished(&self) -> bool {
        self.count() > 0 || self.hindrance.is_some()
    }
}

/// Path that is still uncommitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftPath {
    /// Path from the top of the working tree.
    pub path: String,
    /// Reason why the supervisor does not commit it.
    pub why: LeftBecause,
}

/// Reason why the supervisor leaves a path uncommitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftBecause {
    /// The task does not ask for a commit, or nothing could be committed.
    Unasked,
    /// The file is new and larger than 10 MiB.
    TooLarge,
    /// The file looks like a secret.
    Secret,
    /// Git converts the file with a program, which the supervisor does not run.
    Filter,
    /// The file belongs to a repository inside the worktree.
    Repository,
    /// The file cannot be read, or git accepts no such name.
    Unreadable,
    /// A later release has another reason.
    #[serde(other)]
    Unknown,
}

impl LeftBecause {
    /// Returns the reason in words, for the end of a line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unasked => "not committed",
            Self::TooLarge => "new and larger than 10 MiB",
            Self::Secret => "looks like a secret",
            Self::Filter => "git converts it with a filter, which is not run",
            Self::Repository => "a repository inside the worktree",
            Self::Unreadable => "cannot be read or named",
            Self::Unknown => "another release knows why",
        }
    }
}
