//! Failures of this crate, and the form in which a job process sends them to its caller.

use std::error::Error;

use lease::LeaseError;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::directory::DirectoryError;
use crate::repository::RepositoryError;
use crate::scratch::ScratchError;
use crate::tree::TreeError;
use crate::worktree::WorktreeError;

/// Reasons why an operation on a workspace failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
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
    /// The lease could not be taken.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A whole repository could not be read, copied or made.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl WorkspaceError {
    /// Returns the remedy for the reader.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Scratch(source) => source.hint(),
            Self::Directory(source) => source.hint(),
            Self::Worktree(source) => source.hint(),
            Self::Tree(source) => source.hint(),
            Self::Lease(source) => source.hint(),
            Self::Repository(source) => source.hint(),
        }
    }

    /// Returns the defect, for programs.
    pub fn code(&self) -> Code {
        match self {
            Self::Scratch(source) => source.code(),
            Self::Directory(source) => source.code(),
            Self::Worktree(source) => source.code(),
            Self::Tree(source) => source.code(),
            Self::Lease(source) => source.into(),
            Self::Repository(source) => source.code(),
        }
    }
}

/// Record of a [`WorkspaceError`], which a job process prints and its caller reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The defect.
    pub code: Code,
    /// The message, with the messages of its causes.
    pub message: String,
    /// The remedy for the reader.
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
        Self { code: error.code(), message, hint: error.hint() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Job, Name, Outcome, Worktree};

    fn failure(job: &Job) -> Failure {
        // As a job process is asked: through JSON and back.
        let job: Job = serde_json::from_str(&serde_json::to_string(job).unwrap()).unwrap();
        let failure = Failure::from(&job.run().unwrap_err());
        let json = serde_json::to_string(&failure).unwrap();
        assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), failure);
        failure
    }

    #[test]
    fn a_missing_repository_crosses_with_its_code_and_its_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let worktree = Worktree::new(&path, Name::new("t_1").unwrap());
        let failure = failure(&Job::Inspect { worktree });
        assert_eq!(failure.code, Code::RepositoryMissing);
        assert_eq!(failure.message, format!("no git repository at {}", path.display()));
        assert!(failure.hint.unwrap().contains("git init"));
    }

    #[test]
    fn the_message_of_every_source_is_in_the_record() {
        let failure = failure(&Job::PrepareDirectory { path: Path::new("/nowhere/at/all").to_owned() });
        assert_eq!(failure.message, "a directory workspace is not usable: no directory at /nowhere/at/all");
    }

    #[test]
    fn an_outcome_crosses_unchanged() {
        let base = tempfile::tempdir().unwrap();
        let (base, name) = (base.path().to_owned(), Name::new("t_1").unwrap());
        let prepared =
            Job::PrepareScratch { base: base.clone(), name: name.clone(), owner: None }.run().unwrap();
        let json = serde_json::to_string(&prepared).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), prepared);
        let removed = Job::RemoveScratch { base, name }.run().unwrap();
        assert_eq!(serde_json::to_string(&removed).unwrap(), r#"{"removed":"removed"}"#);
    }
}
