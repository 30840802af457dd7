//! Why a job was not done: of the workspace, of the host, or of the process that was to do it.

use serde::{Deserialize, Serialize};
use shim::shortage::is_shortage;
use workspace::{Origin, WorkspaceError};

use crate::exit::Code;
use crate::failure::Failure;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// The workspace, or what it is made of.
    Workspace(workspace::Code),
    /// A file could not be taken out of a workspace.
    NotTaken,
    /// The host lacks something for now.
    Shortage,
    /// The job was given up before it was done.
    GivenUp,
    /// A directory does not answer.
    NoAnswer,
    /// Git waits in a repository for what does not come.
    Stalled,
    /// The process that was to do it.
    Process,
}

/// Why a job was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub(crate) struct JobFailure {
    /// What is wrong.
    pub(crate) cause: Cause,
    /// The message with those of its sources.
    pub(crate) message: String,
    /// What the reader can do about it.
    pub(crate) hint: Option<String>,
}

impl Cause {
    /// Whether each job in the same repository meets it.
    pub(crate) fn is_of_repository(self) -> bool {
        match self {
            Self::Workspace(code) => code.origin() == Origin::Repository,
            Self::Stalled => true,
            Self::NotTaken | Self::Shortage | Self::GivenUp | Self::NoAnswer | Self::Process => false,
        }
    }

    /// Whether the task names what is not there: the branch that its own is to begin from.
    pub(crate) fn is_of_definition(self) -> bool {
        self == Self::Workspace(workspace::Code::BaseBranchMissing)
    }
}

impl JobFailure {
    /// A failure of the process that was to do it.
    pub(crate) fn process(message: impl Into<String>) -> Self {
        JobFailure { cause: Cause::Process, message: message.into(), hint: None }
    }

    /// The process has answered, but not what it was asked.
    pub(crate) fn another_answer() -> Self {
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
