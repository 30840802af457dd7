//! Reasons why a whole repository could not be read, copied or made.

use std::path::PathBuf;

use crate::code::Code;
use crate::irregular::Irregular;

/// Reasons why a whole repository could not be read, copied or made.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// Nothing at the path can be opened as a repository.
    #[error("open the git repository at {path}")]
    Open { path: PathBuf, source: git2::Error },
    /// The repository belongs to another user than the user who opens it.
    #[error("the git repository at {path} belongs to another user")]
    ForeignOwner { path: PathBuf },
    /// The repository has no commit yet.
    #[error("the git repository at {path} has no commit yet")]
    NoCommit { path: PathBuf },
    /// A reader of its working tree would wait without end.
    #[error("read the working tree at {path}: {found}")]
    Irregular {
        path: PathBuf,
        /// The obstacle.
        found: Irregular,
    },
    /// A part of the repository could not be read.
    #[error("read {what} of the git repository at {path}")]
    Read { path: PathBuf, what: &'static str, source: git2::Error },
    /// The copy could not be made.
    #[error("clone {from} to {to}")]
    Clone { from: PathBuf, to: PathBuf, source: git2::Error },
    /// A file could not be written.
    #[error("write {path}")]
    Write { path: PathBuf, source: std::io::Error },
    /// A commit could not be made.
    #[error("commit to the git repository at {path}")]
    Commit { path: PathBuf, source: git2::Error },
    /// The branch does not exist.
    #[error("the git repository at {path} has no branch {branch}")]
    NoBranch { path: PathBuf, branch: String },
}

impl RepositoryError {
    /// Returns the remedy for the reader.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Open { .. } => Some("name the directory of a git repository".to_owned()),
            // The hint is not to trust the repository, because programs in its configuration are executed as the user
            // who trusts it.
            Self::ForeignOwner { path } => {
                Some(format!("run the command as the owner of {}", path.display()))
            }
            Self::NoCommit { .. } => Some("commit something first".to_owned()),
            Self::Irregular { found, .. } => Some(format!("remove it: rm '{}'", found.path.display())),
            Self::Read { .. }
            | Self::Clone { .. }
            | Self::Write { .. }
            | Self::Commit { .. }
            | Self::NoBranch { .. } => None,
        }
    }

    /// Returns the stable code of this failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Open { .. } => Code::RepositoryMissing,
            Self::ForeignOwner { .. } => Code::RepositoryForeignOwner,
            Self::NoCommit { .. } => Code::RepositoryNoCommit,
            Self::NoBranch { .. } => Code::RepositoryNoBranch,
            Self::Read { .. } | Self::Irregular { .. } => Code::RepositoryUnreadable,
            Self::Clone { .. } => Code::RepositoryNotCloned,
            Self::Write { .. } => Code::RepositoryNotWritten,
            Self::Commit { .. } => Code::RepositoryNotCommitted,
        }
    }
}
