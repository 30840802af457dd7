//! Owner of a lease, and reasons why a lease was refused.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Owner of a lease, as the lease file has it, so that a refusal can name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// Untagged, because the first form is older than the second and has no tag.
#[serde(untagged)]
pub enum LeaseHolder {
    /// A run works in the directory.
    Run {
        board: String,
        /// The run's number on that board.
        run: i64,
        /// The id of the task that has the lease, if its record could be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
    },
    /// The directory is measured or removed, because its task is over. Other callers wait for the end of that.
    Removal { removed_by_board: String },
}

impl std::fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run { board, run, task: Some(task) } => {
                write!(f, "run {run} of board {board} (task {task})")
            }
            Self::Run { board, run, task: None } => write!(f, "run {run} of board {board}"),
            Self::Removal { removed_by_board } => write!(f, "its removal by board {removed_by_board}"),
        }
    }
}

/// Reasons why a lease was refused.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another run has the directory.
    #[error("{workspace} is in use{}", .holder.as_ref().map(|holder| format!(" by {holder}")).unwrap_or_default())]
    Held {
        workspace: PathBuf,
        /// The owner, if the lease file names it already.
        holder: Option<LeaseHolder>,
    },
    /// Another run has the lease on a directory above this directory.
    #[error("{workspace} lies in {above}, which is in use{}", .holder.as_ref().map(|holder| format!(" by {holder}")).unwrap_or_default())]
    HeldAbove {
        workspace: PathBuf,
        /// The directory that is in use.
        above: PathBuf,
        /// The owner, if the lease file names it already.
        holder: Option<LeaseHolder>,
    },
    /// Other runs share this directory, or have a lease on a directory inside it.
    #[error("{workspace}, or a directory in it, is in use by another run")]
    HeldInside { workspace: PathBuf },
    /// The directory, a directory above it or a directory inside it is being removed, and the removal takes longer than
    /// the wait.
    #[error("{workspace}, or a directory above or inside it, is being removed")]
    Removing { workspace: PathBuf },
    /// The directory was removed or replaced before its lease was taken.
    #[error("{workspace} is gone, or another directory is in its place")]
    Gone { workspace: PathBuf },
    /// The lease file could not be opened or locked.
    #[error("lock {path}")]
    Lock { path: PathBuf, source: io::Error },
    /// The holder could not be written into the lease file.
    #[error("write {path}")]
    Write { path: PathBuf, source: io::Error },
    /// The directory of lease files could not be listed.
    #[error("list {path}")]
    List {
        /// The directory of lease files.
        path: PathBuf,
        source: io::Error,
    },
    /// The file of an unowned lease could not be removed.
    #[error("remove {path}")]
    Remove { path: PathBuf, source: io::Error },
}

impl LeaseError {
    /// Returns the remedy for the reader.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Held { .. } | Self::HeldAbove { .. } | Self::HeldInside { .. } => {
                Some("wait until that run has ended, or give this task a workspace of its own".to_owned())
            }
            Self::Removing { .. } => Some("try again when the removal is through".to_owned()),
            Self::Gone { .. } => Some("try again: the directory is made anew".to_owned()),
            Self::Lock { .. } | Self::Write { .. } | Self::List { .. } | Self::Remove { .. } => None,
        }
    }
}
