//! Looks up the files and commits that a worker says it hands over, while its run goes on.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::artifacts;
use crate::error::WorkspaceError;
use crate::repository;
use crate::worktree::Worktree;

/// Files and commits that a worker says it hands over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    pub workspace: PathBuf,
    /// Paths of files, relative to the workspace.
    pub files: Vec<PathBuf>,
    /// Limit on the size of each file, in bytes.
    pub limit: u64,
    /// Commit ids in hex, whole or abbreviated. If there are any, the workspace is a working tree of git.
    pub commits: Vec<String>,
    /// Worktree of the workspace, if it is one. Until its run is sealed, the new objects of the run are apart from the
    /// repository's.
    pub worktree: Option<Worktree>,
}

/// A named file or commit that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfounded {
    /// A file that is not in the workspace, or that cannot be handed over.
    File {
        /// Path as the worker named it.
        path: PathBuf,
        /// Reason why it cannot be handed over.
        why: String,
    },
    /// Commit id as the worker named it.
    Commit(String),
}

impl Claims {
    /// Returns the first file or commit that does not exist.
    ///
    /// # Errors
    /// Fails if this user cannot open or read the repository.
    pub(crate) fn first_unfounded(&self) -> Result<Option<Unfounded>, WorkspaceError> {
        for path in &self.files {
            if let Err(error) = artifacts::check(&self.workspace, path, self.limit) {
                return Ok(Some(Unfounded::File { path: path.clone(), why: error.to_string() }));
            }
        }
        if self.commits.is_empty() {
            return Ok(None);
        }
        let objects = self.worktree.as_ref().map(Worktree::own_objects).transpose()?;
        let missing = repository::first_missing(&self.workspace, objects.as_deref(), &self.commits)?;
        Ok(missing.map(Unfounded::Commit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Base;
    use crate::testing::Fixture;

    fn claims(workspace: PathBuf, files: &[&str], commits: &[&str]) -> Claims {
        let files = files.iter().map(PathBuf::from).collect();
        let commits = commits.iter().map(|id| (*id).to_owned()).collect();
        Claims { workspace, files, limit: 100, commits, worktree: None }
    }

    #[test]
    fn the_first_thing_that_is_not_there_is_named_with_the_reason() {
        let git = Fixture::new();
        let head = git.git(&["rev-parse", "HEAD"]);
        let found = |files: &[&str], commits: &[&str]| {
            claims(git.root.clone(), files, commits).first_unfounded().unwrap()
        };
        assert_eq!(found(&["README"], &[&head, &head[..7]]), None);
        let Some(Unfounded::File { path, why }) = found(&["README", "out/a", "b"], &[]) else {
            panic!("a file")
        };
        assert_eq!((path, why.as_str()), (PathBuf::from("out/a"), "there is no such file"));
        assert!(
            matches!(found(&["../x"], &[]), Some(Unfounded::File { why, .. }) if why.contains("leads out"))
        );
        let tree = git.git(&["rev-parse", "HEAD^{tree}"]);
        for missing in ["0123456789012345678901234567890123456789", "0123456", tree.as_str()] {
            assert_eq!(found(&[], &[&head, missing]), Some(Unfounded::Commit(missing.to_owned())));
        }
    }

    #[test]
    fn a_commit_of_a_run_in_a_worktree_is_found_before_the_run_is_sealed() {
        let git = Fixture::new();
        let worktree = git.worktree("t_1");
        let prepared = worktree.prepare(&Base::Head, None).unwrap();
        let own = worktree.own_objects().unwrap();
        // As the run sees it: its new objects go into a directory of its own.
        let output = git
            .command(&prepared.path)
            .env("GIT_OBJECT_DIRECTORY", &own)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", git.root.join(".git/objects"))
            .args(["commit-tree", "-m", "new", "HEAD^{tree}"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let id = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let mut claims = claims(prepared.path, &[], &[&id]);
        assert_eq!(claims.first_unfounded().unwrap(), Some(Unfounded::Commit(id)));
        claims.worktree = Some(worktree);
        assert_eq!(claims.first_unfounded().unwrap(), None);
    }
}
