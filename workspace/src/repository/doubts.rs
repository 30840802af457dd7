//! What the working tree of a worker hides from a reader: commits with another content, and rules of git that leave files out.

use std::collections::BTreeSet;
use std::path::Path;

use git2::{Diff as Found, DiffDelta, DiffOptions, Repository, Tree};

use super::{RepositoryError, open, read};
use crate::irregular;

/// Opens a working tree that is where its repository is: `core.worktree` of a repository that a worker may write in can name any place.
///
/// # Errors
/// Where the repository cannot be opened by this user, or has its files elsewhere; where git would wait for a FIFO or a device.
pub(super) fn open_tree(path: &Path) -> Result<Repository, RepositoryError> {
    if let Some(found) = irregular::find_stopping(path) {
        return Err(RepositoryError::Irregular { path: path.to_owned(), found });
    }
    let git = open(path)?;
    let own = path.canonicalize().ok();
    let is_own = own.is_some() && git.workdir().and_then(|dir| dir.canonicalize().ok()) == own;
    if is_own {
        return Ok(git);
    }
    Err(read(path, "the working tree")(git2::Error::from_str("`core.worktree` names another place")))
}

/// The paths of what differs between commits and is otherwise in the working tree.
pub(super) fn contradicted(
    git: &Repository,
    committed: &Found<'_>,
    tip: &Tree<'_>,
    options: &mut DiffOptions,
) -> Result<BTreeSet<Vec<u8>>, git2::Error> {
    let since = git.diff_tree_to_workdir(Some(tip), Some(options))?;
    let otherwise: BTreeSet<Vec<u8>> = since.deltas().map(|delta| path(&delta)).collect();
    Ok(committed.deltas().map(|delta| path(&delta)).filter(|path| otherwise.contains(path)).collect())
}

/// The path of what differs, as git has it.
pub(super) fn path(delta: &DiffDelta<'_>) -> Vec<u8> {
    delta.new_file().path_bytes().or(delta.old_file().path_bytes()).unwrap_or_default().to_vec()
}

/// What of the repository's own settings leaves changes out of a diff.
pub(super) fn blind(git: &Repository) -> Vec<String> {
    let mut blind = Vec::new();
    // A linked working tree has them from its repository, which its worker does not write.
    if !git.is_worktree() {
        for (name, what) in [("info/exclude", "files"), ("info/attributes", "lines")] {
            if has_rules(&git.path().join(name)) {
                blind.push(format!("the rules of .git/{name} may hide {what}"));
            }
        }
    }
    if git.config().and_then(|config| config.get_bool("core.fileMode")).is_ok_and(|is_seen| !is_seen) {
        blind.push("`core.fileMode` is off: that a file may be executed is not seen".to_owned());
    }
    blind
}

/// Whether a file has a line that is no comment. One that cannot be read may have.
fn has_rules(file: &Path) -> bool {
    match std::fs::metadata(file) {
        Err(_) => false,
        Ok(known) if !known.is_file() || known.len() > 1 << 20 => true,
        Ok(_) => std::fs::read(file).map_or(true, |bytes| {
            bytes.split(|byte| *byte == b'\n').any(|line| {
                let line = line.trim_ascii();
                // The directory of linked working trees stands there where tasks have had some.
                !line.is_empty() && !line.starts_with(b"#") && line != b"/.worktrees/"
            })
        }),
    }
}
