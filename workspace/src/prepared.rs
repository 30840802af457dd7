//! Result of a preparation: the path, its owner, and the further paths that a worker there needs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lease::FileIdentity;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// A workspace that is ready to be worked in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// Path of the directory, absolute and without symbolic links; the worker's current directory.
    pub path: PathBuf,
    pub kind: Kind,
    /// Amount of work that the preparation had to do.
    pub made: Preparation,
    pub owner: Owner,
    /// Identity of the directory, by which it is leased.
    pub place: FileIdentity,
    /// True if the directory is the top of a working tree of git.
    pub is_repository: bool,
    /// Branch that is checked out; only for a worktree.
    pub branch: Option<Branch>,
    /// Access of the worker in addition to `path` itself, to which it has full access.
    pub grants: Grants,
    /// Sentences about the workspace for the worker and for people.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Variables that the worker's environment gets.
    pub environment: BTreeMap<String, String>,
}

/// Progress of writing the files of a new worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedOut {
    /// Number of files written so far.
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
    /// A directory that belongs to the task alone.
    Scratch,
    /// A directory that existed before, and stays.
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
    /// Returns the user and group of this process.
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
    /// Name of the branch, `task/<id>`.
    pub name: String,
    /// Commit at which the branch left its starting point, in hex.
    pub base_commit: String,
    /// Commit at the tip of the branch, in hex.
    pub head_commit: String,
}

/// Access of a worker in addition to the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// Steps that build the worker's view of these paths, in order. A worker without a view of its own gets `read` and `write`
    /// instead.
    pub shown: Vec<Shown>,
    /// Paths to read, with everything beneath.
    pub read: Vec<PathBuf>,
    /// Paths to read and write, with everything beneath.
    pub write: Vec<PathBuf>,
}

/// Step that changes the view of a worker. The crate `policies` has its own type for the same steps
/// (`policies::Arrange`), because neither crate depends on the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Shows an empty directory, which later steps fill.
    Fresh {
        /// Existing directory that is replaced.
        at: PathBuf,
    },
    /// Shows a file or directory for reading.
    Show {
        at: PathBuf,
        /// Its path on the host.
        source: PathBuf,
    },
    /// Shows a file or directory for reading and writing.
    Lend {
        at: PathBuf,
        /// Its path on the host.
        source: PathBuf,
    },
    /// Shows a symbolic link in an empty directory of an earlier step.
    Link {
        at: PathBuf,
        /// Path that the link contains.
        target: PathBuf,
    },
}
