//! What the working tree of a worker hides from a reader: commits with another content, and rules of git that leave files out.

use std::collections::BTreeSet;
use std::path::Path;

use git2::{Config, Diff as Found, DiffDelta, DiffOptions, Index, Repository, Tree};

use super::{RepositoryError, open, read};
use crate::irregular;

/// The rule that leaves out the linked working trees of tasks.
const WORKTREES: &str = "/.worktrees/";

/// Opens a working tree that is where its repository is: `core.worktree` of a repository that a worker may write in can name any place.
///
/// # Errors
/// Where the repository cannot be opened by this user, or has its files elsewhere; where git would wait for a FIFO or a device.
pub(crate) fn open_tree(path: &Path) -> Result<Repository, RepositoryError> {
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

/// What a diff reads of a working tree: its files and the objects of its repository, and none of what its worker may have written into `.git` to
/// hide changes: rules of `info/exclude` and `info/attributes`, settings such as `core.fileMode`, marks of the index. What `.gitignore` and
/// `.gitattributes` say counts: they are files of the diff themselves.
///
/// A linked working tree has rules and settings from its repository, which its worker does not write.
pub(super) fn unhidden(git: Repository) -> Result<Repository, git2::Error> {
    let Some(files) = git.workdir().filter(|_| !git.is_worktree()) else { return Ok(git) };
    let plain = Repository::from_odb(git.odb()?)?;
    plain.set_workdir(files, false)?;
    plain.set_config(&Config::new()?)?;
    plain.set_index(&mut Index::new()?)?;
    plain.add_ignore_rule(WORKTREES)?;
    Ok(plain)
}

/// What of the repository's own settings a diff leaves unread, and what it cannot see by them.
pub(super) fn warnings(git: &Repository) -> Vec<String> {
    let mut warnings = Vec::new();
    if !git.is_worktree() {
        for (name, what) in [("info/exclude", "files"), ("info/attributes", "lines")] {
            if has_rules(&git.path().join(name)) {
                warnings.push(format!("the rules of .git/{name} are not followed, as its worker may have written them: {what} that they hide are shown"));
            }
        }
        return warnings;
    }
    if git.config().and_then(|config| config.get_bool("core.fileMode")).is_ok_and(|is_seen| !is_seen) {
        warnings.push("`core.fileMode` is off: that a file may be executed is not seen".to_owned());
    }
    warnings
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
                !line.is_empty() && !line.starts_with(b"#") && line != WORKTREES.as_bytes()
            })
        }),
    }
}
