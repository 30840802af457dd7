//! Reasons why a worktree could not be prepared, examined or removed, with remedies.

use std::path::PathBuf;

use crate::code::Code;
use crate::git::GitError;
use crate::irregular::Irregular;
use crate::links::LinkError;
use crate::locks::LockError;
use crate::name::Name;
use crate::open::OpenError;
use crate::tree::TreeError;

/// Reason why a worktree could not be prepared, examined or removed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The repository is missing, unusable or refused.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The directory of worktrees could not be made.
    #[error("create the directory of worktrees {path}")]
    CreateDirectory { path: PathBuf, source: std::io::Error },
    /// The directory of worktrees could not be opened.
    #[error("open the directory of worktrees")]
    OpenDirectory(#[source] OpenError),
    /// The directory of the worktree, or a file in its place, could not be opened.
    #[error("open the worktree")]
    OpenTree(#[source] OpenError),
    /// The note that marks an incomplete worktree could not be locked, read or written.
    #[error("keep the note {path}")]
    Note { path: PathBuf, source: std::io::Error },
    /// The remains of an interrupted preparation or removal could not be removed.
    #[error("clear the worktree away")]
    Clear(#[source] TreeError),
    /// The files of the worktree could not be listed.
    #[error("list {path}")]
    ListTree { path: PathBuf, source: std::io::Error },
    /// The working tree could not be made.
    #[error("make the directory {path}")]
    MakeTree { path: PathBuf, source: std::io::Error },
    /// Git has a worktree of that name at another path.
    #[error("git has a worktree named {id} at {path}")]
    NameTaken { id: Name, path: PathBuf },
    /// The files that link the worktree to the repository could not be written.
    #[error("tie {path} to its repository")]
    Link { path: PathBuf, source: LinkError },
    /// The worktree's private part of the repository could not be made, read or removed.
    #[error("keep the worktree's own part of the repository in {path}")]
    Private {
        /// The directory, or the file in it.
        path: PathBuf,
        source: std::io::Error,
    },
    /// The worker's objects or references could not be taken over.
    #[error("take over what the run wrote in {path}")]
    Publish { path: PathBuf, source: git2::Error },
    /// The repository could not be written.
    #[error("store what the run committed in {path}")]
    Store { path: PathBuf, source: git2::Error },
    /// The worker's branch leads to an object that is missing or defective.
    #[error("{branch} is not moved to {commit}: the object {object} {why}")]
    Incomplete {
        branch: String,
        commit: String,
        object: String,
        /// Defect of the object.
        why: &'static str,
    },
    /// The directory of the worker's objects has an entry other than a file or directory.
    #[error("nothing of the run's commits is taken over: {found}")]
    Planted { found: Irregular },
    /// A tag or a stash of the worker names an incomplete object.
    #[error("the tags and stashes of {task} are not kept: {object} {why}")]
    KeptIncomplete {
        task: Name,
        object: String,
        /// Defect of the object.
        why: &'static str,
    },
    /// The worker has more tags or stashes than are kept.
    #[error("of the tags and stashes of {task} no more than {most} each are kept; {more} are left out")]
    KeptTooMany { task: Name, most: usize, more: usize },
    /// Another process has moved the branch during the run.
    #[error("{branch} was moved by somebody else during the run; what the run committed is at {kept}")]
    Moved {
        branch: String,
        /// The reference that holds the run's commits.
        kept: String,
    },
    /// A repository inside the worktree could not be renamed.
    #[error("rename {path}, in which the worker could write")]
    SetAside { path: PathBuf, source: std::io::Error },
    /// The files that the worker left cannot be made safe, so the worktree has no `.git` by which git would find it.
    #[error(
        "{path} is withheld: its .git is taken away, because git might run what its worker has left there"
    )]
    Withheld {
        path: PathBuf,
        /// Directory of its metadata in the repository.
        metadata: PathBuf,
        /// The step that failed.
        source: Box<WorktreeError>,
    },
    /// The files that link the worktree to the repository are missing or lead elsewhere, so its state is unknown.
    #[error("{path} is not tied to its repository any more")]
    Untied { path: PathBuf },
    /// libgit2 could not open the finished worktree.
    #[error("open {path} as a git worktree")]
    OpenWorktree { path: PathBuf, source: git2::Error },
    /// Objects of the branch's commit are not in the repository.
    #[error(
        "check out {branch}: some of its files are not in {repository}, which is a partial clone or damaged"
    )]
    MissingFiles { repository: PathBuf, branch: String, source: git2::Error },
    /// The files of the branch could not be checked out.
    #[error("check out {branch} in {path}")]
    CheckOut { path: PathBuf, branch: String, source: git2::Error },
    /// A lost index could not be made again.
    #[error("make the index of {path} again")]
    Index { path: PathBuf, source: git2::Error },
    /// The state of the worktree could not be read.
    #[error("read the state of {path}")]
    Inspect { path: PathBuf, source: git2::Error },
    /// The owner of the repository took the worktree away during a run.
    #[error(
        "the worktree {path} was removed or moved during the run: its commits are on {places}, and nothing else is kept"
    )]
    Gone {
        path: PathBuf,
        /// Names of the branch, and of the reference that keeps other commits.
        places: String,
    },
    /// There is no worktree.
    #[error("no worktree at {path}")]
    Missing { path: PathBuf },
    /// Removing it would lose uncommitted work.
    #[error("{path} has uncommitted changes in {count} places")]
    Dirty {
        path: PathBuf,
        /// Changed, new or deleted paths; a new directory counts once.
        count: usize,
    },
    /// Removing it would lose commits.
    #[error("{branch} has {count} commits that are on no other branch, remote or tag")]
    Unmerged {
        /// The branch, or the detached HEAD of the worktree.
        branch: String,
        count: usize,
    },
    /// A live git has the worktree or its branch locked, or a lock could not be removed.
    #[error(transparent)]
    InUse(#[from] LockError),
    /// A person locked the worktree with `git worktree lock`.
    #[error("{path} is locked by `git worktree lock`")]
    Locked { path: PathBuf },
}

impl WorktreeError {
    /// Returns the remedy for the reader.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Git(source) => source.hint(),
            Self::OpenDirectory(source) | Self::OpenTree(source) => source.hint(),
            Self::Clear(source) => source.hint(),
            Self::NameTaken { path, .. } => {
                Some(format!("remove it (`git worktree remove {}`) or rename its directory", path.display()))
            }
            Self::Untied { .. } => Some("a run of its task prepares it again".to_owned()),
            Self::Withheld { path, metadata, .. } => Some(format!(
                "see to what is named; `echo 'gitdir: {}' > {}/.git`, or the next run of its task, releases it",
                metadata.display(),
                path.display()
            )),
            Self::Dirty { path, .. } => Some(format!(
                "commit them (`git -C {0} add -A && git -C {0} commit`), and merge what is to be kept",
                path.display()
            )),
            Self::Unmerged { branch, .. } => Some(format!(
                "merge it (`git merge {branch}`), or keep it under another name (`git branch <name> {branch}`)"
            )),
            Self::Locked { path } => Some(format!("`git worktree unlock {}`", path.display())),
            Self::InUse(LockError::Held { pid, .. }) => Some(format!(
                "finish the git of process {pid}, or end it: the next start of the task goes on"
            )),
            Self::Incomplete { .. } => {
                Some("its complete objects are in the repository: see `git fsck --lost-found`".to_owned())
            }
            Self::Planted { .. } => {
                Some("nothing to do: it was removed, and the branch is unchanged".to_owned())
            }
            Self::MissingFiles { repository, branch, .. } => Some(format!(
                "in a partial clone, fetch them with `git -C {0} archive --output /dev/null {branch}`; otherwise see `git -C {0} fsck`",
                repository.display()
            )),
            Self::Store { path, .. } => Some(format!(
                "see whether {} can be written and has space; the next run of the task takes the commits over",
                path.display()
            )),
            Self::Moved { branch, kept } => Some(format!("merge both: git merge {kept} on {branch}")),
            Self::CreateDirectory { .. }
            | Self::Note { .. }
            | Self::ListTree { .. }
            | Self::MakeTree { .. }
            | Self::Link { .. }
            | Self::Private { .. }
            | Self::Publish { .. }
            | Self::KeptIncomplete { .. }
            | Self::KeptTooMany { .. }
            | Self::SetAside { .. }
            | Self::OpenWorktree { .. }
            | Self::CheckOut { .. }
            | Self::Index { .. }
            | Self::Inspect { .. }
            | Self::InUse(LockError::Remove { .. })
            | Self::Gone { .. }
            | Self::Missing { .. } => None,
        }
    }

    /// Returns the stable code of this failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Git(source) => source.code(),
            Self::OpenDirectory(source) | Self::OpenTree(source) => source.code(),
            Self::Clear(source) => source.code(),
            Self::NameTaken { .. } => Code::WorktreeNameTaken,
            Self::Untied { .. } | Self::Withheld { .. } => Code::WorktreeUntied,
            Self::Gone { .. } | Self::Missing { .. } => Code::WorkspaceMissing,
            Self::Dirty { .. } => Code::WorktreeDirty,
            Self::Unmerged { .. } => Code::WorktreeUnmerged,
            Self::Locked { .. } | Self::InUse(LockError::Held { .. }) => Code::WorktreeLocked,
            Self::Inspect { .. } => Code::WorktreeUnreadable,
            Self::Publish { .. } | Self::Store { .. } | Self::Incomplete { .. } | Self::Planted { .. } => {
                Code::CommitsNotTaken
            }
            Self::KeptIncomplete { .. } | Self::KeptTooMany { .. } => Code::ReferencesNotKept,
            Self::Moved { .. } => Code::BranchMoved,
            Self::CreateDirectory { .. }
            | Self::Note { .. }
            | Self::ListTree { .. }
            | Self::MakeTree { .. }
            | Self::Link { .. }
            | Self::Private { .. }
            | Self::SetAside { .. }
            | Self::OpenWorktree { .. }
            | Self::MissingFiles { .. }
            | Self::CheckOut { .. }
            | Self::InUse(LockError::Remove { .. })
            | Self::Index { .. } => Code::WorkspaceNotPrepared,
        }
    }
}
