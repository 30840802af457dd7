//! Work on a workspace as data: a [`Job`] is sent to a job process under the worker's uid, which replies with an
//! [`Outcome`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::author::Author;
use crate::base::Base;
use crate::claims::{Claims, Unfounded};
use crate::directory::ExistingDirectory;
use crate::error::WorkspaceError;
use crate::irregular::{self, Irregular};
use crate::live_diff::live_diff;
use crate::name::Name;
use crate::prepared::{CheckedOut, Owner, Prepared};
use crate::release::{Loss, Status};
use crate::removal::Removal;
use crate::repository::{self, Committed, Diff, DiffOf, Head, RepositorySnapshot};
use crate::rest::{CommitTerms, Span};
use crate::size::Size;
use crate::uncommitted::Uncommitted;
use crate::worktree::{Sealed, Worktree, WorktreeError};
use crate::{directory, git, scratch, size, tree};

/// Paths outside of its repository that a job needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FurtherPaths {
    /// Files to read.
    pub read: Vec<PathBuf>,
    /// Directories to read and write.
    pub write: Vec<PathBuf>,
}

/// Request to a job process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Job {
    /// See [`scratch::prepare`]. A job with an owner runs as root, in the process of the caller.
    PrepareScratch {
        /// The directory of scratch workspaces.
        base: PathBuf,
        name: Name,
        /// The worker's user, if not the caller's.
        owner: Option<Owner>,
    },
    /// See [`directory::prepare`].
    PrepareDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// See [`directory::make`].
    MakeDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// See [`directory::existing_directory`].
    FindExistingDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// Opens the repository as the start of a run would, and refuses an unusable one.
    OpenRepository {
        /// The repository.
        path: PathBuf,
    },
    /// See [`Worktree::prepare`].
    PrepareWorktree {
        worktree: Worktree,
        /// Starting point of a new branch.
        base: Base,
        /// Author of the commits; none leaves the author to git's settings.
        author: Option<Author>,
    },
    /// See [`Worktree::seal`].
    SealWorktree { worktree: Worktree },
    /// See [`Worktree::rest`].
    CommitRest {
        worktree: Worktree,
        /// Commits between which the run worked.
        span: Span,
        /// Terms of the commit to make; none to commit nothing.
        terms: Option<CommitTerms>,
    },
    /// See [`crate::remove_tree`]. It runs as the worker's user first; on [`Removal::Emptied`] it runs once more as the
    /// owner of `base`.
    RemoveScratch {
        /// The directory of scratch workspaces.
        base: PathBuf,
        name: Name,
    },
    /// See [`crate::measure`].
    Measure {
        /// The directory that holds the tree.
        base: PathBuf,
        name: Name,
    },
    /// See [`Worktree::remove`].
    RemoveWorktree {
        worktree: Worktree,
        /// Kinds of work that may be lost.
        loss: Loss,
    },
    /// See [`Worktree::judge`].
    JudgeWorktree {
        worktree: Worktree,
        /// Kinds of work that may be lost.
        loss: Loss,
    },
    /// See [`Worktree::status`].
    Inspect { worktree: Worktree },
    /// See [`repository::snapshot`].
    ExamineRepository {
        /// The repository.
        path: PathBuf,
    },
    /// See [`repository::clone`].
    CloneRepository {
        /// The repository.
        from: PathBuf,
        /// The clone.
        to: PathBuf,
    },
    /// See [`repository::make`].
    MakeRepository {
        /// Directory of the new repository.
        path: PathBuf,
        /// Contents of its files, by their paths.
        files: BTreeMap<String, String>,
        /// Author of its first commit.
        author: Author,
    },
    /// See [`repository::tip`].
    ReadTip {
        /// The repository.
        path: PathBuf,
        /// Short name of the branch, such as `main`.
        branch: String,
    },
    /// Reads the commit at HEAD of a working tree.
    ReadHead {
        /// The working tree.
        path: PathBuf,
    },
    /// Finds the commits and changes of a working tree since a commit.
    GatherEvidence {
        /// The working tree.
        path: PathBuf,
        /// Commit at the begin of the run, in hex.
        base: Option<String>,
    },
    /// Compares two states of a repository.
    ReadDiff {
        /// The two states to compare.
        of: DiffOf,
        /// Worktree of a run in progress; none for an ended run.
        live: Option<Worktree>,
    },
    /// Checks that the files and commits that a worker claims to hand over exist.
    FindClaims { claims: Claims },
    /// Finds the repository that contains a path.
    Discover {
        /// Path at which the search begins.
        path: PathBuf,
    },
    /// See [`irregular::find`].
    FindIrregular { top: PathBuf },
}

/// Amount of work of a [`Job`], by which its time limit is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// The job looks up a few directories by their names.
    Glance,
    /// The job reads a few files, or searches a tree once.
    Look,
    /// The job writes or removes a whole tree.
    Change,
}

/// Result of a [`Job`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A workspace is ready.
    Prepared(Prepared),
    /// The directory, or its nearest existing parent, with its owner.
    ExistingDirectory(ExistingDirectory),
    /// The repository can have worktrees.
    Usable,
    /// Result of a removal, or of the judgement about one.
    Removed(Removal),
    /// Size of a tree.
    Measured(Size),
    /// State of a worktree.
    Inspected(Status),
    /// State of a repository.
    Snapshot(RepositorySnapshot),
    /// The repository was cloned or made, with this commit at HEAD.
    Provided(Head),
    /// Commit at the tip of a branch.
    Committed(Committed),
    /// The commit at HEAD, in hex, if it exists.
    Head(Option<String>),
    /// Commits and changes of a working tree.
    Evidence(repository::Evidence),
    Diff(Diff),
    /// First claimed file or commit that does not exist; none if all exist.
    Unfounded(Option<Unfounded>),
    /// Repository that contains the path; none if there is none.
    Discovered(Option<PathBuf>),
    /// The commits of the run were taken over, and git can be used in the worktree without running the worker's programs.
    Sealed(Sealed),
    /// Changes that a run left uncommitted.
    Rest(Uncommitted),
    /// First file whose open would make git wait, such as a FIFO; none if there is none.
    Irregular(Option<Irregular>),
}

impl Job {
    /// Returns the amount of work, as an upper bound.
    pub fn effort(&self) -> Effort {
        match self {
            Self::PrepareWorktree { .. }
            | Self::SealWorktree { .. }
            | Self::CommitRest { .. }
            | Self::RemoveScratch { .. }
            | Self::RemoveWorktree { .. }
            | Self::CloneRepository { .. }
            | Self::MakeRepository { .. } => Effort::Change,
            Self::PrepareDirectory { .. }
            | Self::MakeDirectory { .. }
            | Self::FindExistingDirectory { .. } => Effort::Glance,
            Self::PrepareScratch { .. }
            | Self::OpenRepository { .. }
            | Self::Measure { .. }
            | Self::JudgeWorktree { .. }
            | Self::Inspect { .. }
            | Self::ExamineRepository { .. }
            | Self::ReadTip { .. }
            | Self::ReadHead { .. }
            | Self::GatherEvidence { .. }
            | Self::ReadDiff { .. }
            | Self::FindClaims { .. }
            | Self::Discover { .. }
            | Self::FindIrregular { .. } => Effort::Look,
        }
    }

    /// Returns the repository that git opens for the job; none for a job without git.
    pub fn repository(&self) -> Option<&Path> {
        match self {
            Self::PrepareWorktree { worktree, .. }
            | Self::SealWorktree { worktree }
            | Self::CommitRest { worktree, .. }
            | Self::RemoveWorktree { worktree, .. }
            | Self::JudgeWorktree { worktree, .. }
            | Self::Inspect { worktree } => Some(&worktree.repository),
            Self::ExamineRepository { path }
            | Self::OpenRepository { path }
            | Self::CloneRepository { from: path, .. }
            | Self::ReadTip { path, .. }
            | Self::ReadHead { path }
            | Self::GatherEvidence { path, .. }
            | Self::Discover { path } => Some(path),
            Self::ReadDiff { of, .. } => Some(&of.path),
            Self::FindClaims { claims } => (!claims.commits.is_empty()).then_some(&*claims.workspace),
            Self::PrepareScratch { .. }
            | Self::PrepareDirectory { .. }
            | Self::MakeDirectory { .. }
            | Self::FindExistingDirectory { .. }
            | Self::RemoveScratch { .. }
            | Self::Measure { .. }
            | Self::MakeRepository { .. }
            | Self::FindIrregular { .. } => None,
        }
    }

    /// Takes the steps for which the job process has to see the whole host, before the process is confined: it removes locks
    /// that a killed git has left in a worktree to prepare, and looks where the owner has moved a worktree. The process has
    /// the user of the job by now.
    ///
    /// # Errors
    /// [`WorktreeError::InUse`] if a live git has the worktree locked.
    pub fn before_confinement(&self) -> Result<FurtherPaths, WorkspaceError> {
        let mut further = FurtherPaths::default();
        match self {
            Self::PrepareWorktree { worktree, .. } => {
                worktree.remove_stale_locks()?;
                further.read.extend(worktree.moved_to().map(|tree| tree.join(".git")));
            }
            // The files that the worker wrote are made safe there.
            Self::SealWorktree { worktree } => further.write.extend(worktree.moved_to()),
            Self::CommitRest { worktree, .. }
            | Self::RemoveWorktree { worktree, .. }
            | Self::JudgeWorktree { worktree, .. }
            | Self::Inspect { worktree } => {
                further.read.extend(worktree.moved_to().map(|tree| tree.join(".git")));
            }
            _ => {}
        }
        Ok(further)
    }

    /// Returns the directory that the job names by its path; none for any other job.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::PrepareDirectory { path }
            | Self::MakeDirectory { path }
            | Self::FindExistingDirectory { path } => Some(path),
            Self::PrepareScratch { .. }
            | Self::OpenRepository { .. }
            | Self::PrepareWorktree { .. }
            | Self::SealWorktree { .. }
            | Self::CommitRest { .. }
            | Self::RemoveScratch { .. }
            | Self::Measure { .. }
            | Self::RemoveWorktree { .. }
            | Self::JudgeWorktree { .. }
            | Self::Inspect { .. }
            | Self::ExamineRepository { .. }
            | Self::CloneRepository { .. }
            | Self::MakeRepository { .. }
            | Self::ReadTip { .. }
            | Self::ReadHead { .. }
            | Self::GatherEvidence { .. }
            | Self::ReadDiff { .. }
            | Self::FindClaims { .. }
            | Self::Discover { .. }
            | Self::FindIrregular { .. } => None,
        }
    }

    /// Does the work in this process, with the rights of its user.
    pub fn run(self) -> Result<Outcome, WorkspaceError> {
        self.run_telling(&|_| {})
    }

    /// Does the work as [`Self::run`] does. Calls `tell` with the progress of the files of a new worktree.
    pub fn run_telling(self, tell: &dyn Fn(CheckedOut)) -> Result<Outcome, WorkspaceError> {
        Ok(match self {
            Self::PrepareScratch { base, name, owner } => {
                Outcome::Prepared(scratch::prepare(&base, &name, owner)?)
            }
            Self::PrepareDirectory { path } => Outcome::Prepared(directory::prepare(&path)?),
            Self::MakeDirectory { path } => Outcome::Prepared(directory::make(&path)?),
            Self::FindExistingDirectory { path } => {
                Outcome::ExistingDirectory(directory::existing_directory(&path)?)
            }
            Self::OpenRepository { path } => {
                git::usable(&path).map_err(WorktreeError::from)?;
                Outcome::Usable
            }
            Self::PrepareWorktree { worktree, base, author } => {
                Outcome::Prepared(worktree.prepare_telling(&base, author.as_ref(), tell)?)
            }
            Self::SealWorktree { worktree } => Outcome::Sealed(worktree.seal()?),
            Self::CommitRest { worktree, span, terms } => {
                Outcome::Rest(worktree.rest(&span, terms.as_ref())?)
            }
            Self::RemoveScratch { base, name } => Outcome::Removed(tree::remove_tree(&base, &name)?),
            Self::Measure { base, name } => Outcome::Measured(size::measure(&base, &name)?),
            Self::RemoveWorktree { worktree, loss } => Outcome::Removed(worktree.remove(loss)?),
            Self::JudgeWorktree { worktree, loss } => Outcome::Removed(worktree.judge(loss)?),
            Self::Inspect { worktree } => Outcome::Inspected(worktree.status()?),
            Self::ExamineRepository { path } => Outcome::Snapshot(repository::snapshot(&path)?),
            Self::CloneRepository { from, to } => Outcome::Provided(repository::clone(&from, &to)?),
            Self::MakeRepository { path, files, author } => {
                Outcome::Provided(repository::make(&path, &files, &author)?)
            }
            Self::ReadTip { path, branch } => Outcome::Committed(repository::tip(&path, &branch)?),
            Self::ReadHead { path } => Outcome::Head(repository::head_of(&path)?),
            Self::GatherEvidence { path, base } => {
                Outcome::Evidence(repository::evidence(&path, base.as_deref())?)
            }
            Self::ReadDiff { of, live: Some(worktree) } => Outcome::Diff(live_diff(&worktree, &of)?),
            Self::ReadDiff { of, live: None } => Outcome::Diff(repository::diff(&of, None, None)?),
            Self::FindClaims { claims } => Outcome::Unfounded(claims.first_unfounded()?),
            Self::Discover { path } => Outcome::Discovered(git::discover(&path)),
            Self::FindIrregular { top } => Outcome::Irregular(irregular::find(&top)),
        })
    }
}
