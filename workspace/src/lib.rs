//! Workspaces of runs: prepares, leases, inspects and removes the directory of a worker.
//!
//! | kind | what [`Job`] makes of it | when it is removed |
//! |---|---|---|
//! | scratch | a fresh directory of mode 0700, [`scratch::prepare`] | [`Job::RemoveScratch`] |
//! | directory | an existing directory, [`directory::prepare`] | never |
//! | worktree | a linked git worktree on its own branch, [`Worktree::prepare`] | [`Job::RemoveWorktree`], refused when work would be lost |
//!
//! The crate knows no task, no board and no process, and everything is synchronous. A caller that is root runs a
//! [`Job`] in a short-lived job process under the worker's uid (JSON in, [`Outcome`] or [`Failure`] as JSON out),
//! because libgit2 and tree walks then read files that a worker wrote. Such a job process needs a time limit, because a
//! worker can plant files that make a reader wait. libgit2's ownership check stays on, and no `safe.directory` is ever
//! written. libgit2 also reads the git configuration of `$HOME`, and fails if it may not enter that directory. So the
//! job process needs a `HOME` that the worker's uid can read or that does not exist, and no `XDG_CONFIG_HOME`.
//!
//! Promises:
//!
//! * no symbolic link is followed on the way to a workspace, nor while one is removed;
//! * a preparation that was interrupted at any point is repaired by the next one, and finished work in it is kept;
//! * a directory is leased by device and inode, so two boards cannot work in one directory under two names, and no board works
//!   inside of a directory in which another works. A run and a removal wait for a removal, and are not refused by it;
//! * nothing that exists only in a worktree is deleted unless the caller permits it with [`Loss`].
//!
//! Not promised: filters such as git-lfs do not run at checkout, because libgit2 executes nothing from a repository.
//! This is intended.
//!
//! ```
//! use workspace::{Name, scratch};
//! # let base = tempfile::tempdir().unwrap();
//! let prepared = scratch::prepare(base.path(), &Name::new("t_0badcafe").unwrap(), None).unwrap();
//! assert!(prepared.path.is_dir());
//! ```

pub mod artifacts;
mod author;
mod base;
mod claims;
mod code;
pub mod directory;
mod error;
mod git;
pub mod irregular;
mod job;
mod links;
mod live_diff;
mod locks;
mod name;
mod open;
pub mod placing;
mod prepared;
mod release;
mod removal;
pub mod repository;
mod rest;
pub mod scratch;
mod secret;
mod size;
#[cfg(test)]
mod testing;
mod tree;
mod uncommitted;
mod worktree;

pub use artifacts::ArtifactError;
pub use author::Author;
pub use base::Base;
pub use claims::{Claims, Unfounded};
pub use code::{Code, Origin};
pub use directory::DirectoryError;
pub use error::{Failure, WorkspaceError};
pub use git::{GitError, Layout, Shut, own_configuration};
pub use irregular::{Irregular, IrregularKind};
pub use job::{Effort, FurtherPaths, Job, Outcome};
pub use lease::{FileIdentity, Lease, LeaseError, LeaseHolder, sweep as sweep_leases};
pub use links::LinkError;
pub use locks::LockError;
pub use name::{Name, NameError};
pub use open::OpenError;
pub use placing::PlacingError;
pub use prepared::{Branch, CheckedOut, Grants, Kind, Owner, Preparation, Prepared, Shown};
pub use release::{Changes, Loss, Status};
pub use removal::Removal;
pub use repository::{
    Detail, Diff, DiffLine, DiffOf, Evidence, FileDiff, FileStatus, Hunk, LineKind, RepositoryError,
};
pub use rest::{CommitTerms, Span};
pub use scratch::{ScratchError, close as close_scratch};
pub use size::{DiskUse, Size, measure};
pub use tree::{TreeError, remove_tree};
pub use uncommitted::{LeftBecause, LeftPath, Uncommitted};
pub use worktree::{Sealed, Worktree, WorktreeError};
