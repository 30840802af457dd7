//! Defects of a workspace, in one word: for programs, which read no messages.

use serde::{Deserialize, Serialize};

/// A defect of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A path is not absolute.
    WorkspacePathRelative,
    /// Nothing is there.
    WorkspaceMissing,
    /// The path is no directory.
    WorkspaceNotADirectory,
    /// A part of the path is a symbolic link.
    WorkspaceSymlink,
    /// The directory cannot be opened.
    WorkspaceUnreadable,
    /// The directory belongs to another user than the worker's.
    WorkspaceForeignOwner,
    /// A missing directory could not be made.
    WorkspaceNotMade,
    /// The workspace could not be made ready.
    WorkspaceNotPrepared,
    /// The workspace could not be removed.
    WorkspaceNotRemoved,
    /// A file system is mounted in it.
    WorkspaceMountInside,
    /// Another run has a lease on the directory, or on one above or inside it.
    WorkspaceHeld,
    /// The workspace was removed while its lease was being taken.
    WorkspaceGone,
    /// Its lease could not be written.
    WorkspaceLeaseFailed,
    /// No repository is there.
    RepositoryMissing,
    /// The repository belongs to another user.
    RepositoryForeignOwner,
    /// The repository has its files somewhere else.
    RepositoryElsewhere,
    /// The repository has no working tree.
    RepositoryBare,
    /// The repository has no commit to begin with.
    RepositoryEmpty,
    /// The repository cannot be opened, read or written.
    RepositoryUnusable,
    /// A whole repository has no commit.
    RepositoryNoCommit,
    /// A whole repository has no such branch.
    RepositoryNoBranch,
    /// A whole repository cannot be read.
    RepositoryUnreadable,
    RepositoryNotCloned,
    /// A repository was not written to.
    RepositoryNotWritten,
    /// Nothing was committed in a repository.
    RepositoryNotCommitted,
    /// The branch to begin from does not exist.
    BaseBranchMissing,
    /// The branch of the task, or its name, is in use.
    BranchTaken,
    /// The branch has moved while it was looked at.
    BranchMoved,
    /// The worktree's name is taken in its repository.
    WorktreeNameTaken,
    /// The worktree is not tied to its repository any more.
    WorktreeUntied,
    /// The worktree has changes that are not committed.
    WorktreeDirty,
    /// The worktree has commits that are nowhere else.
    WorktreeUnmerged,
    /// `git worktree lock` was used on it.
    WorktreeLocked,
    /// The worktree cannot be read.
    WorktreeUnreadable,
    /// The commits of a worktree could not be taken over.
    CommitsNotTaken,
    /// The references of a worktree could not be kept.
    ReferencesNotKept,
}

/// Origin of a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The repository: each worktree in it has the same defect.
    Repository,
    /// The worktree or its branch, which may hold work that exists nowhere else.
    Work,
    /// The directory, or the way to it.
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
