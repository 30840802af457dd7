//! Parts of a repository that this process may not use, for example because several users share it.
//!
//! A group shares a repository by the group of its directories (git-config(1), `core.sharedRepository`). A process
//! without this group is refused by the directories of other members, which hold some objects and not others. So a run
//! might commit and lose the commit at its end.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

/// Directories of a `.git` in which a supervisor writes.
const WRITTEN: [&str; 10] = [
    "",
    "info",
    "logs",
    "logs/refs/heads",
    "logs/refs/heads/task",
    "objects",
    "refs",
    "refs/heads",
    "refs/heads/task",
    "worktrees",
];
/// Directory of the private parts of worktrees.
const HOME: &str = "supervisor";
/// Files of a `.git` without which libgit2 sees another repository: it takes an unreadable one for a missing one.
const READ: [&str; 4] = ["HEAD", "config", "config.worktree", "packed-refs"];
/// Limit on the entries that are searched after a failure.
const MOST: usize = 200_000;

/// Part of a repository that is closed to this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shut {
    /// The file or directory.
    pub path: PathBuf,
    /// Owner, as `uid:gid`; none if it is unknown.
    pub owner: Option<String>,
}

/// Returns a file of a `.git` that this process must read and may not, or a directory in which it must write and may not.
pub(super) fn unusable(common: &Path) -> Option<Shut> {
    let unread = READ.iter().find_map(|name| shut(common.join(name), Access::READ_OK));
    if unread.is_some() {
        return unread;
    }
    let objects = fs::read_dir(common.join("objects")).into_iter().flatten().flatten();
    let fans = objects.filter(|entry| entry.file_name().len() == 2).map(|entry| entry.path());
    // A branch in place of a directory is refused elsewhere.
    let mut all = WRITTEN.iter().map(|name| common.join(name)).chain(fans).filter(|path| !path.is_file());
    all.find_map(|path| shut(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK))
}

/// Returns a file or directory of a `.git` that this process may not read.
pub(super) fn unreadable(common: &Path) -> Option<Shut> {
    let mut next = vec![common.to_owned()];
    let mut left = MOST;
    while let Some(dir) = next.pop() {
        if let Some(found) = shut(dir.clone(), Access::READ_OK | Access::EXEC_OK) {
            return Some(found);
        }
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            left = left.checked_sub(1)?;
            match entry.file_type() {
                // The private parts of worktrees belong to workers, so they are left out.
                Ok(kind) if kind.is_dir() && entry.path() != common.join(HOME) => next.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    if let Some(found) = shut(entry.path(), Access::READ_OK) {
                        return Some(found);
                    }
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    None
}

fn shut(path: PathBuf, wanted: Access) -> Option<Shut> {
    let refused = accessat(CWD, &path, wanted, AtFlags::EACCESS).err()? == Errno::ACCESS;
    refused.then(|| {
        let owner = path.symlink_metadata().ok().map(|found| format!("{}:{}", found.uid(), found.gid()));
        Shut { path, owner }
    })
}
