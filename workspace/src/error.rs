//! Any failure of this crate, and the form in which it crosses from a helper process to its caller.

use std::error::Error;

use serde::{Deserialize, Serialize};

use crate::directory::DirectoryError;
use crate::lease::LeaseError;
use crate::scratch::ScratchError;
use crate::spec::SpecError;
use crate::tree::TreeError;
use crate::worktree::WorktreeError;

/// Why something about a workspace was not done.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A workspace was asked for in words that mean none.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A scratch directory could not be prepared.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// An existing directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A worktree could not be prepared, examined or removed.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// A tree could not be removed.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A lease was not had.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

impl WorkspaceError {
    /// Returns what the reader can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Spec(source) => source.hint(),
            Self::Scratch(source) => source.hint(),
            Self::Directory(source) => source.hint(),
            Self::Worktree(source) => source.hint(),
            Self::Tree(source) => source.hint(),
            Self::Lease(source) => source.hint(),
        }
    }

    /// Returns the stable code of this failure.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Spec(source) => source.code(),
            Self::Scratch(source) => source.code(),
            Self::Directory(source) => source.code(),
            Self::Worktree(source) => source.code(),
            Self::Tree(source) => source.code(),
            Self::Lease(source) => source.code(),
        }
    }
}

/// A [`WorkspaceError`] as a record: what a helper process prints and its caller reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The stable code.
    pub code: String,
    /// The message with those of its sources.
    pub message: String,
    /// What the reader can do about it.
    pub hint: Option<String>,
}

impl From<&WorkspaceError> for Failure {
    fn from(error: &WorkspaceError) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self { code: error.code().to_owned(), message, hint: error.hint() }
    }
}
