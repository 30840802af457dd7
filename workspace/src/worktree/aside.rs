//! Renames the repositories that a worker made, so that git does not use them: repositories inside its worktree, files
//! that name repositories, and repositories of submodules.
//!
//! They are renamed and not removed, so that a person can inspect a repository and rename it back.
//!
//! See decision 0213.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, chmod, fstat, openat2,
    renameat_with, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::WorktreeError;
use crate::open;

/// Name by which git recognizes a repository in a directory.
const DOT_GIT: &CStr = c".git";
/// Suffix of the new name of a repository, whose content a worker has determined.
const SUFFIX: &str = ".untrusted";
/// Limit on a path that git, or a shell that starts git, can use, in bytes (`PATH_MAX` of limits.h).
const LONGEST: usize = 4096;

/// Renames the entry `name` of the directory `path`. Returns its former path, or none if the directory or the entry
/// does not exist.
pub(crate) fn put(path: &Path, name: &CStr) -> Result<Option<PathBuf>, WorktreeError> {
    match open::directory(path) {
        Ok(opened) => renamed(&opened.fd, path, name),
        Err(open::OpenError::Missing { .. }) => Ok(None),
        Err(error) => Err(WorktreeError::OpenTree(error)),
    }
}

/// Renames each `.git` beneath the top directory of a working tree, whether it is a directory, a file or a symbolic
/// link. Returns their former paths.
///
/// Entries of the index are renamed as well, because the next `git reset` may change the index. The search does not
/// follow symbolic links, and skips paths that are too long for git. Directories that the worker closed are made
/// accessible.
pub(crate) fn put_embedded(tree: &Path) -> Result<Vec<PathBuf>, WorktreeError> {
    let mut done = Vec::new();
    let mut next = vec![tree.to_owned()];
    while let Some(path) = next.pop() {
        let Some((held, readable)) = opened(&path)? else { continue };
        let listed = |errno: Errno| WorktreeError::ListTree { path: path.clone(), source: errno.into() };
        let mut has_repository = false;
        for entry in Dir::new(readable).map_err(listed)? {
            let entry = entry.map_err(listed)?;
            let name = entry.file_name();
            if name == DOT_GIT {
                has_repository = path != tree;
            } else if !matches!(name.to_bytes(), b"." | b"..") && is_directory(&held, name, entry.file_type())
            {
                let below = path.join(OsStr::from_bytes(name.to_bytes()));
                if below.as_os_str().len() < LONGEST {
                    next.push(below);
                }
            }
        }
        if has_repository {
            done.extend(renamed(&held, &path, DOT_GIT)?);
        }
    }
    Ok(done)
}

/// Adds the permissions `wanted` to an open directory, if they are missing. A directory of another user stays closed,
/// because the worker did not make it.
pub(crate) fn unlock(held: &OwnedFd, wanted: Mode) -> std::io::Result<()> {
    let stat = fstat(held)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    if mode.contains(wanted) || stat.st_uid != geteuid().as_raw() {
        return Ok(());
    }
    // fchmod(2) refuses an `O_PATH` descriptor. The path in /proc names the open directory itself, even if its name was
    // taken by another file in the meantime.
    Ok(chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), mode | wanted)?)
}

/// Opens a directory of the tree, as a path and for reading. Returns none if it was removed or replaced, or if a user
/// other than the worker closed it.
fn opened(path: &Path) -> Result<Option<(OwnedFd, OwnedFd)>, WorktreeError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let failed = |source: std::io::Error| WorktreeError::ListTree { path: path.to_owned(), source };
    let held = match openat2(CWD, path, flags, Mode::empty(), resolve) {
        Ok(held) => held,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => return Ok(None),
        Err(errno) => return Err(failed(errno.into())),
    };
    unlock(&held, Mode::RUSR | Mode::XUSR).map_err(failed)?;
    match open::readable(&held) {
        Ok(readable) => Ok(Some((held, readable))),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn is_directory(of: &OwnedFd, name: &CStr, listed: FileType) -> bool {
    match listed {
        FileType::Unknown => statat(of, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        kind => kind == FileType::Directory,
    }
}

fn renamed(held: &OwnedFd, path: &Path, name: &CStr) -> Result<Option<PathBuf>, WorktreeError> {
    let whole = path.join(OsStr::from_bytes(name.to_bytes()));
    let failed = |source: std::io::Error| WorktreeError::SetAside { path: whole.clone(), source };
    match statat(held, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(errno.into())),
        Ok(_) => {}
    }
    unlock(held, Mode::RWXU).map_err(failed)?;
    let plain = String::from_utf8_lossy(name.to_bytes());
    for n in 0.. {
        let new = if n == 0 { format!("{plain}{SUFFIX}") } else { format!("{plain}{SUFFIX}-{n}") };
        match renameat_with(held, name, held, &new, RenameFlags::NOREPLACE) {
            Ok(()) => break,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
    }
    Ok(Some(whole))
}
