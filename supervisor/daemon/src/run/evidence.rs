//! Evidence of a run's work in git, gathered by the daemon and not by the worker: from the commit at its start to the
//! tree at its end.
//!
//! A worker may have written anything into the tree, so a job process under its uid reads it, within limits. An error
//! is recorded in place of a missing result.
//!
//! The commit at the start is recorded before the run. Commits since the time of the start would prove nothing: a
//! worker sets the times of its commits.

use std::path::{Path, PathBuf};

use kernel::WorkspaceSpec;
use policies::Identity;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use workspace::{Job, Outcome, Prepared};

use host::job;

/// Git state at the start of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    tree: PathBuf,
    /// Repository, if it lies outside of the tree.
    repository: Option<PathBuf>,
    /// Commit at the start; none in an empty repository.
    head: Option<String>,
}

impl Begun {
    pub(super) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Commit at the start; none in an empty repository.
    pub(super) fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    /// Returns the paths that a look at the tree may read and write. A worker could have planted references to other
    /// repositories, so the reach is limited. A job with no writable path would not be confined, so the tree is one.
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
                // A directory that git cannot open is an ordinary directory.
                Ok(_) | Err(_) => None,
            }
        }
        WorkspaceSpec::Directory(_) | WorkspaceSpec::Scratch => None,
    }
}

/// Gathers the changes in the tree since the start. Blocks.
pub(crate) fn gather(begun: &Begun, identity: Option<Identity>) -> Value {
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
