//! What a run did in git, found by us and not told by its worker: from the commit at its start to the tree at its end.
//!
//! A worker may have written anything into the tree: a job process under its own uid looks, within limits, and what it cannot
//! find out is said in the place of what it was to find.

use std::path::{Path, PathBuf};

use policies::Identity;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use workspace::{Job, Outcome, Prepared, WorkspaceSpec};

use crate::host::job;

/// Where a run began that works in a tree of git.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::daemon) struct Begun {
    tree: PathBuf,
    /// The repository, where that is elsewhere.
    repository: Option<PathBuf>,
    /// The commit; none where nothing was committed yet.
    head: Option<String>,
}

impl Begun {
    pub(super) fn tree(&self) -> &Path {
        &self.tree
    }

    /// The commit; none where nothing was committed yet.
    pub(super) fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    /// What a look at the tree may reach: a worker could have planted there what leads git to other repositories. A job that
    /// names no place to write is not kept to any, so the tree is one.
    pub(super) fn reach(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let mut read = job::system_reads();
        read.extend(self.repository.clone());
        (read, vec![self.tree.clone()])
    }
}

/// Notes where a run begins, if it works in a tree of git. Blocking.
pub(super) fn begin(
    spec: &WorkspaceSpec,
    prepared: &Prepared,
    identity: Option<Identity>,
    cancel: &CancellationToken,
) -> Option<Begun> {
    let begun = Begun { tree: prepared.path.clone(), repository: None, head: None };
    match spec {
        WorkspaceSpec::Worktree { repository } => {
            let head = prepared.branch.as_ref().map(|branch| branch.head_commit.clone());
            Some(Begun { repository: repository.clone(), head, ..begun })
        }
        WorkspaceSpec::Directory(_) if prepared.is_repository => {
            let job = Job::ReadHead { path: begun.tree.clone() };
            let (read, write) = begun.reach();
            match job::work_unless(cancel, identity, read, write, job) {
                Ok(Outcome::Head(head)) => Some(Begun { head, ..begun }),
                // What git cannot open is a directory like any other.
                Ok(_) | Err(_) => None,
            }
        }
        WorkspaceSpec::Directory(_) | WorkspaceSpec::Scratch => None,
    }
}

/// Finds what has happened in the tree since. Blocking.
pub(in crate::daemon) fn gather(begun: &Begun, identity: Option<Identity>) -> Value {
    if identity.is_none() && nix::unistd::geteuid().is_root() {
        return json!({ "error": "no user is known who could read the tree" });
    }
    let job = Job::GatherEvidence { path: begun.tree.clone(), base: begun.head.clone() };
    let (read, write) = begun.reach();
    match job::work(identity, read, write, job) {
        Ok(Outcome::Evidence(evidence)) => json!(evidence),
        Ok(_) => json!({ "error": "the job process answered another question" }),
        Err(failure) => json!({ "error": failure.message }),
    }
}
