//! Failures of jobs: of the workspace, of the host, or of the job process itself.

use serde::{Deserialize, Serialize};
use shim::shortage::is_shortage;
use workspace::{Origin, WorkspaceError};

use base::exit::Code;
use base::failure::Failure;

/// Class of a job's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The workspace, or the repository or directory that it is made from.
    Workspace(workspace::Code),
    /// A file could not be copied or placed.
    NotTaken,
    /// The host, or the file system on which the job worked, lacks resources at present.
    Shortage,
    /// The host lacks resources at present for the job process itself.
    NoProcess,
    /// The job was given up before its end.
    GivenUp,
    /// A directory does not respond.
    NoAnswer,
    /// Git hangs in a repository.
    Stalled,
    /// The job process itself failed.
    Process,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct JobFailure {
    /// Class of the failure.
    pub cause: Cause,
    /// Message with its causes.
    pub message: String,
    /// Remedy for the reader.
    pub hint: Option<String>,
}

impl Cause {
    /// Returns true if every job in the same repository would fail in the same way.
    pub fn is_of_repository(self) -> bool {
        match self {
            Self::Workspace(code) => code.origin() == Origin::Repository,
            Self::Stalled => true,
            Self::NotTaken
            | Self::Shortage
            | Self::NoProcess
            | Self::GivenUp
            | Self::NoAnswer
            | Self::Process => false,
        }
    }

    /// Returns true if the job may succeed later, because resources are lacking at present.
    pub fn is_lack(self) -> bool {
        matches!(self, Self::Shortage | Self::NoProcess)
    }

    /// Returns true if a live git of the repository's owner has the worktree to prepare locked.
    pub fn is_in_use(self) -> bool {
        self == Self::Workspace(workspace::Code::WorktreeLocked)
    }

    /// Returns true if the definition of the task is at fault: the base branch of its worktree does not exist.
    pub fn is_of_definition(self) -> bool {
        self == Self::Workspace(workspace::Code::BaseBranchMissing)
    }
}

impl JobFailure {
    /// Makes a failure of the job process itself.
    pub fn process(message: impl Into<String>) -> Self {
        JobFailure { cause: Cause::Process, message: message.into(), hint: None }
    }

    /// Makes the failure for a reply of the wrong kind.
    pub fn another_answer() -> Self {
        Self::process("the job process answered another question")
    }
}

impl From<&WorkspaceError> for JobFailure {
    fn from(error: &WorkspaceError) -> Self {
        let workspace::Failure { code, message, hint } = error.into();
        let cause = if is_shortage(error) { Cause::Shortage } else { Cause::Workspace(code) };
        JobFailure { cause, message, hint }
    }
}

impl From<JobFailure> for Failure {
    fn from(failure: JobFailure) -> Self {
        Failure { hint: failure.hint, ..Failure::new(Code::Failed, failure.message) }
    }
}
