//! Gathers evidence of a run's work in git: the changes from the commit at its start to the tree at its end. The daemon
//! gathers it, so that it does not depend on the worker's own report.
//!
//! A worker may have written anything into the tree, so a job process under the worker's uid reads it, within limits. If the
//! job fails, its error is recorded in place of the evidence.
//!
//! The commit at the start is recorded before the run. The times of commits would prove nothing, because a worker can set
//! them.

use std::path::{Path, PathBuf};

use policies::Identity;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use workspace::{Job, Outcome, Prepared, WorkspaceSpec};

use host::job;

/// Git state at the start of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GitStart {
    tree: PathBuf,
    /// Repository of a worktree; none for a tree that contains its repository.
    repository: Option<PathBuf>,
    /// Commit at the start, in hex; none in an empty repository.
    head: Option<String>,
}

impl GitStart {
    pub(super) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Returns the commit at the start, in hex; none in an empty repository.
    pub(super) fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    /// Returns the paths that a job on the tree may read, and the paths that it may write. The job is confined to them,
    /// because a worker could have planted references to other repositories. The tree is writable because a job without a
    /// writable path would not be confined at all.
    pub(super) fn reach(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let mut read = job::system_reads();
        read.extend(self.repository.clone());
        (read, vec![self.tree.clone()])
    }
}

/// Records the git state at the start of a run; none if it does not work in git. Blocks.
pub(super) fn begin(
    spec: &WorkspaceSpec,
    prepared: &Prepared,
    identity: Option<Identity>,
    cancel: &CancellationToken,
) -> Option<GitStart> {
    let start = GitStart { tree: prepared.path.clone(), repository: None, head: None };
    match spec {
        WorkspaceSpec::Worktree { repository } => {
            let head = prepared.branch.as_ref().map(|branch| branch.head_commit.clone());
            Some(GitStart { repository: repository.clone(), head, ..start })
        }
        WorkspaceSpec::Directory(_) if prepared.is_repository => {
            let job = Job::ReadHead { path: start.tree.clone() };
            let (read, write) = start.reach();
            match job::work_unless(cancel, identity, read, write, job) {
                Ok(Outcome::Head(head)) => Some(GitStart { head, ..start }),
                // A directory that git cannot open is an ordinary directory.
                Ok(_) | Err(_) => None,
            }
        }
        WorkspaceSpec::Directory(_) | WorkspaceSpec::Scratch => None,
    }
}

/// Returns the changes in the tree since the start as JSON, or an object with the key `error`. Blocks.
pub(crate) fn gather(start: &GitStart, identity: Option<Identity>) -> Value {
    if identity.is_none() && nix::unistd::geteuid().is_root() {
        return json!({ "error": "no user is known who could read the tree" });
    }
    let job = Job::GatherEvidence { path: start.tree.clone(), base: start.head.clone() };
    let (read, write) = start.reach();
    match job::work(identity, read, write, job) {
        Ok(Outcome::Evidence(evidence)) => json!(evidence),
        Ok(_) => json!({ "error": "the job process answered another question" }),
        Err(failure) => json!({ "error": failure.message }),
    }
}
