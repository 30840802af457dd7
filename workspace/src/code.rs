//! Stable codes for the defects of workspaces and repositories, so that programs need not parse messages.

use lease::LeaseError;
use serde::{Deserialize, Serialize};

/// Defect of a workspace, a worktree or a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A path is not absolute.
    WorkspacePathRelative,
    /// The path of the workspace does not exist.
    WorkspaceMissing,
    /// The path is not a directory.
    WorkspaceNotADirectory,
    /// A part of the path is a symbolic link.
    WorkspaceSymlink,
    /// The directory cannot be opened.
    WorkspaceUnreadable,
    /// The directory belongs to another user than the worker's.
    WorkspaceForeignOwner,
    /// The directory does not exist and could not be made.
    WorkspaceNotMade,
    /// The workspace could not be prepared for a run.
    WorkspaceNotPrepared,
    /// The workspace could not be removed.
    WorkspaceNotRemoved,
    /// A file system is mounted inside the workspace.
    WorkspaceMountInside,
    /// Another run has a lease on the directory, on a directory above it, or on one inside it.
    WorkspaceHeld,
    /// The workspace was removed while its lease was being taken.
    WorkspaceGone,
    /// The lease of the workspace could not be written.
    WorkspaceLeaseFailed,
    /// The path has no git repository.
    RepositoryMissing,
    /// The repository belongs to another user.
    RepositoryForeignOwner,
    /// The repository's own files are outside of it: its `.git` leads to another directory.
    RepositoryElsewhere,
    /// The repository has no working tree.
    RepositoryBare,
    /// The repository has no commit from which a worktree could begin.
    RepositoryEmpty,
    /// The repository cannot be opened, read or written.
    RepositoryUnusable,
    /// The repository to clone or read has no commit.
    RepositoryNoCommit,
    /// The repository to read has no branch of that name.
    RepositoryNoBranch,
    /// The repository to clone or read cannot be read.
    RepositoryUnreadable,
    /// The repository could not be cloned.
    RepositoryNotCloned,
    /// A file of the repository could not be written.
    RepositoryNotWritten,
    /// A commit could not be made in the repository.
    RepositoryNotCommitted,
    /// The branch to begin from does not exist.
    BaseBranchMissing,
    /// The branch of the task, or its name, is in use.
    BranchTaken,
    /// Another process has moved the branch during the run.
    BranchMoved,
    /// The worktree's name is taken in its repository.
    WorktreeNameTaken,
    /// The worktree is no longer connected to its repository.
    WorktreeUntied,
    /// The worktree has changes that are not committed.
    WorktreeDirty,
    /// The worktree has commits that are on no other branch, remote or tag.
    WorktreeUnmerged,
    /// A person has locked the worktree with `git worktree lock`.
    WorktreeLocked,
    /// The worktree cannot be read.
    WorktreeUnreadable,
    /// The commits of a worktree could not be taken over.
    CommitsNotTaken,
    /// Tags and stashes of a worktree could not be kept, or not all of them.
    ReferencesNotKept,
}

/// Part of a workspace that has a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The repository: each worktree in it has the same defect.
    Repository,
    /// The worktree or its branch, which may hold work that exists nowhere else.
    Work,
    /// The directory or its path, the branch, or the commits of a run.
    Place,
}

impl Code {
    /// Returns the origin of the defect.
    pub fn origin(self) -> Origin {
        match self {
            Self::RepositoryMissing
            | Self::RepositoryForeignOwner
            | Self::RepositoryElsewhere
            | Self::RepositoryBare
            | Self::RepositoryEmpty
            | Self::RepositoryUnusable
            | Self::RepositoryNoCommit
            | Self::RepositoryNoBranch
            | Self::RepositoryUnreadable
            | Self::RepositoryNotCloned
            | Self::RepositoryNotWritten
            | Self::RepositoryNotCommitted => Origin::Repository,
            Self::WorktreeUntied | Self::WorktreeDirty | Self::WorktreeUnmerged | Self::WorktreeLocked => {
                Origin::Work
            }
            Self::WorkspacePathRelative
            | Self::WorkspaceMissing
            | Self::WorkspaceNotADirectory
            | Self::WorkspaceSymlink
            | Self::WorkspaceUnreadable
            | Self::WorkspaceForeignOwner
            | Self::WorkspaceNotMade
            | Self::WorkspaceNotPrepared
            | Self::WorkspaceNotRemoved
            | Self::WorkspaceMountInside
            | Self::WorkspaceHeld
            | Self::WorkspaceGone
            | Self::WorkspaceLeaseFailed
            | Self::BaseBranchMissing
            | Self::BranchTaken
            | Self::BranchMoved
            | Self::WorktreeNameTaken
            | Self::WorktreeUnreadable
            | Self::CommitsNotTaken
            | Self::ReferencesNotKept => Origin::Place,
        }
    }
}

impl From<&LeaseError> for Code {
    fn from(error: &LeaseError) -> Self {
        match error {
            LeaseError::Held { .. }
            | LeaseError::HeldAbove { .. }
            | LeaseError::HeldInside { .. }
            | LeaseError::Removing { .. } => Self::WorkspaceHeld,
            LeaseError::Gone { .. } => Self::WorkspaceGone,
            LeaseError::Lock { .. }
            | LeaseError::Write { .. }
            | LeaseError::List { .. }
            | LeaseError::Remove { .. } => Self::WorkspaceLeaseFailed,
        }
    }
}
