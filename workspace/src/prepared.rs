//! Result of a preparation: the path, its owner, and the further paths that a worker there needs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lease::FileIdentity;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// A workspace that is ready to be worked in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The directory, absolute and free of symbolic links; the worker's cwd.
    pub path: PathBuf,
    pub kind: Kind,
    /// Part of the workspace that had to be made.
    pub made: Preparation,
    pub owner: Owner,
    /// The directory's identity, by which it is leased.
    pub place: FileIdentity,
    /// True if the directory is the top of a working tree of git.
    pub is_repository: bool,
    /// The branch that is checked out; only for a worktree.
    pub branch: Option<Branch>,
    /// Access of the worker beside `path` itself, to which it has full access.
    pub grants: Grants,
    /// Sentences about the workspace that a worker and people have to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Variables that the worker's environment gets.
    pub environment: BTreeMap<String, String>,
}

/// Files of a new worktree, while they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedOut {
    /// Number of files that are written.
    pub done: usize,
    /// Number of files of the commit.
    pub total: usize,
}

impl std::fmt::Display for CheckedOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "its worktree is being made: {} of {} files", self.done, self.total)
    }
}

/// The kinds of workspace, without their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A directory of the run's own.
    Scratch,
    /// A directory that was there and stays.
    Directory,
    /// A linked git worktree.
    Worktree,
}

/// Amount of work that the preparation of a workspace had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preparation {
    /// The workspace was made for this run.
    Created,
    /// The workspace existed, with the files that an earlier run left in it.
    Reused,
    /// Parts of the workspace existed; the missing parts were added, and no work was touched.
    Repaired,
}

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
}

impl Owner {
    /// Returns the user and group this process acts as.
    pub fn current() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    pub(crate) fn from_stat(stat: &Stat) -> Self {
        Self { uid: stat.st_uid, gid: stat.st_gid }
    }
}

/// Branch of a worktree, with its first and its present commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// The branch's name, `task/<id>`.
    pub name: String,
    /// The commit, in hex, where the branch left the one it was asked to start from.
    pub base_commit: String,
    /// The commit, in hex, that the branch points at now.
    pub head_commit: String,
}

/// Access of a worker beside the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// Steps that build the worker's view of these paths, in order. A worker without a view of its own gets `read` and `write`
    /// instead.
    pub shown: Vec<Shown>,
    /// To be read, with all beneath.
    pub read: Vec<PathBuf>,
    /// To be read and written, with all beneath.
    pub write: Vec<PathBuf>,
}

/// Step of a worker's view. The crate `policies` has the same type as `policies::Arrange`, because neither of the two crates knows the
/// other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// An empty directory, for what the later steps show in it.
    Fresh {
        /// The directory, which is there.
        at: PathBuf,
    },
    /// A file or directory, to be read.
    Show {
        at: PathBuf,
        /// Its path on the host.
        source: PathBuf,
    },
    /// A file or directory, to be read and written.
    Lend {
        at: PathBuf,
        /// Its path on the host.
        source: PathBuf,
    },
    /// A symbolic link in such an empty directory.
    Link {
        at: PathBuf,
        /// Path that the link holds.
        target: PathBuf,
    },
}
