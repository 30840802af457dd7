//! Changes in the working tree of a run while it goes on.

use crate::error::WorkspaceError;
use crate::links;
use crate::repository::{self, Diff, DiffOf};
use crate::worktree::Worktree;

/// Compares the working tree with a commit while its run goes on. The run's new objects are not in the repository yet.
///
/// # Errors
/// The errors of a diff in [`crate::repository`], and an error if the repository cannot be opened.
pub(crate) fn live_diff(worktree: &Worktree, of: &DiffOf) -> Result<Diff, WorkspaceError> {
    let tip = links::read(&worktree.own_branch()?).filter(|tip| git2::Oid::from_str(tip).is_ok());
    Ok(repository::diff(of, Some(&worktree.own_objects()?), tip)?)
}
