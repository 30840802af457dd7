//! Looks up named commits in the repository of a working tree.

use std::path::Path;

use git2::{Oid, Repository};

use super::{RepositoryError, open, read};

/// Length of a complete commit id, in digits.
const WHOLE: usize = 40;

/// Returns the first of `ids` that names no commit. Each is a commit id in hex, whole or abbreviated. `more` is a
/// directory of further git objects.
///
/// # Errors
/// Fails if this user cannot open `tree`.
pub(crate) fn first_missing(
    tree: &Path,
    more: Option<&Path>,
    ids: &[String],
) -> Result<Option<String>, RepositoryError> {
    let git = open(tree)?;
    if let Some(objects) = more.and_then(Path::to_str) {
        let borrowed = git.odb().and_then(|odb| odb.add_disk_alternate(objects));
        borrowed.map_err(read(tree, "the objects of the run"))?;
    }
    Ok(ids.iter().find(|id| !is_there(&git, id)).cloned())
}

fn is_there(git: &Repository, id: &str) -> bool {
    let commit = match Oid::from_str(id) {
        Ok(whole) if id.len() == WHOLE => git.find_commit(whole),
        _ => git.find_commit_by_prefix(id),
    };
    commit.is_ok()
}
