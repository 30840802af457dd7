//! Reasons why a repository could not be used, with remedies.

use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};

use super::layout::Layout;
use super::rights::Shut;
use crate::code::Code;
use crate::open::OpenError;

/// Reason why a repository could not be used.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The path could not be opened as a directory.
    #[error("open the repository")]
    Path(#[source] OpenError),
    /// The directory is no repository.
    #[error("no git repository at {path}")]
    NotARepository { path: PathBuf },
    /// The repository belongs to another user than the user who opens it.
    #[error("the git repository at {path} belongs to another user")]
    ForeignOwner { path: PathBuf, source: git2::Error },
    /// libgit2 could not open the repository.
    #[error("open the git repository at {path}")]
    Open { path: PathBuf, source: git2::Error },
    /// The repository's `.git` leads to another directory.
    #[error("{}", .layout.explanation(path, git))]
    Elsewhere {
        path: PathBuf,
        /// The directory to which its `.git` leads.
        git: PathBuf,
        layout: Layout,
    },
    /// The repository's settings include a file that may not be read.
    #[error(
        "the settings of the git repository at {path} include {file}, which is outside of the repository, and no run may read it"
    )]
    Included { path: PathBuf, file: PathBuf },
    /// The repository borrows objects from another repository (gitrepository-layout(5), `objects/info/alternates`).
    #[error(
        "the git repository at {path} borrows objects from {from} (`git clone --shared` or `--reference`), where no run may read"
    )]
    Borrows {
        path: PathBuf,
        from: String,
        /// The file that names the other repository.
        alternates: PathBuf,
    },
    /// The user has no right to a part of the repository, which belongs to another user.
    #[error("{}", closed_to_user(path, part))]
    Shut {
        path: PathBuf,
        /// The first such part that was found.
        part: Shut,
    },
    /// The repository has no working tree.
    #[error("the git repository at {path} is bare")]
    Bare { path: PathBuf },
    /// The repository has no commit yet.
    #[error("the git repository at {path} has no commit to start from")]
    NoCommit { path: PathBuf },
    /// The branch to start from does not exist.
    #[error("the git repository at {path} has no branch {branch}")]
    NoBaseBranch { path: PathBuf, branch: String },
    /// A branch named `task` exists, so a branch `task/<id>` cannot.
    #[error(
        "the git repository at {path} has a branch named `{prefix}`, so no branch can be named `{prefix}/…`"
    )]
    PrefixTaken {
        path: PathBuf,
        /// The branch that is in the way.
        prefix: String,
    },
    /// The branch is checked out in the repository itself.
    #[error("the branch {branch} is checked out in {path} itself")]
    CheckedOutElsewhere { path: PathBuf, branch: String },
    /// A commit, branch or reference could not be read.
    #[error("read {what} of the git repository at {path}")]
    Read { path: PathBuf, what: &'static str, source: git2::Error },
    /// The branch could not be made.
    #[error("create the branch {branch} in {path}")]
    CreateBranch { path: PathBuf, branch: String, source: git2::Error },
    /// The branch could not be deleted.
    #[error("delete the branch {branch} of {path}")]
    DeleteBranch { path: PathBuf, branch: String, source: git2::Error },
    /// A directory or file that git needs could not be made.
    #[error("create {path}")]
    Provide { path: PathBuf, source: std::io::Error },
    /// The worktrees could not be excluded from the repository's status.
    #[error("add the worktrees to {path}")]
    Exclude { path: PathBuf, source: std::io::Error },
}

impl GitError {
    /// Returns the remedy for the reader.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotARepository { .. } | Self::Path(OpenError::Missing { .. }) => {
                Some("run `git init` there, or name a repository with worktree:/abs/path".to_owned())
            }
            Self::Path(source) => source.hint(),
            Self::ForeignOwner { path, .. } => Some(format!(
                "the worker must run as the owner of {}: run the supervisor as that user or as root",
                path.display()
            )),
            Self::Elsewhere { path, git, layout } => Some(layout.hint(path, git)),
            Self::Included { path, file, .. } => Some(format!(
                "copy the settings of {file} into {git}/config, and remove the include there, or move the file into {git} and include it from there",
                file = file.display(),
                git = path.join(".git").display()
            )),
            Self::Borrows { path, alternates, .. } => Some(format!(
                "copy them into it: `git -C {} repack -a -d && rm {}`",
                path.display(),
                alternates.display()
            )),
            Self::Shut { path, .. } => Some(format!(
                "use a clone that belongs to one user: git clone {path} /path/of/the/clone. A repository that a group shares is served by the daemon of one of its members, who has all of that user's groups; a worker of root's daemon has the primary group of the owner's account alone",
                path = path.display()
            )),
            Self::Bare { path } => Some(format!(
                "name a repository with a working tree, such as a clone: `git clone {}`",
                path.display()
            )),
            Self::NoCommit { path } => Some(format!(
                "make a first commit: `git -C {} commit --allow-empty -m start`",
                path.display()
            )),
            Self::NoBaseBranch { path, .. } => {
                Some(format!("see which there are: `git -C {} branch --list`", path.display()))
            }
            Self::PrefixTaken { path, prefix } => {
                Some(format!("rename it: `git -C {} branch -m {prefix} {prefix}-branch`", path.display()))
            }
            Self::CheckedOutElsewhere { path, .. } => {
                Some(format!("switch it to another branch: `git -C {} switch <branch>`", path.display()))
            }
            Self::Open { .. } => Some(
                "check it with `git fsck`; repositories with reftable, SHA-256 objects or partial clones are not supported"
                    .to_owned(),
            ),
            Self::Read { .. }
            | Self::CreateBranch { .. }
            | Self::DeleteBranch { .. }
            | Self::Provide { .. }
            | Self::Exclude { .. } => None,
        }
    }

    /// Returns the stable code of this failure.
    pub fn code(&self) -> Code {
        match self {
            Self::NotARepository { .. } | Self::Path(OpenError::Missing { .. }) => Code::RepositoryMissing,
            Self::Path(source) => source.code(),
            Self::ForeignOwner { .. } => Code::RepositoryForeignOwner,
            Self::Elsewhere { .. } => Code::RepositoryElsewhere,
            Self::Bare { .. } => Code::RepositoryBare,
            Self::NoCommit { .. } => Code::RepositoryEmpty,
            Self::NoBaseBranch { .. } => Code::BaseBranchMissing,
            Self::PrefixTaken { .. } | Self::CheckedOutElsewhere { .. } => Code::BranchTaken,
            Self::Open { .. }
            | Self::Included { .. }
            | Self::Borrows { .. }
            | Self::Shut { .. }
            | Self::Read { .. }
            | Self::CreateBranch { .. }
            | Self::DeleteBranch { .. }
            | Self::Provide { .. }
            | Self::Exclude { .. } => Code::RepositoryUnusable,
        }
    }
}

/// Returns the refusal of a repository with a part that is closed to the present user.
fn closed_to_user(path: &Path, part: &Shut) -> String {
    let owner = part.owner.as_ref().map(|owner| format!(", which belongs to {owner} (uid:gid)"));
    format!(
        "the git repository at {} is not open to uid {}, gid {}: no right to {}{}",
        path.display(),
        geteuid().as_raw(),
        getegid().as_raw(),
        part.path.display(),
        owner.unwrap_or_default()
    )
}
