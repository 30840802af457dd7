//! Hides repositories that a worker made from git: those inside its worktree, the files that name them, and the repositories of
//! submodules.
//!
//! They are renamed and not removed, so that a person who has looked at one can rename it back.
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

/// The name by which git knows a repository in a directory.
const DOT_GIT: &CStr = c".git";
/// Suffix of the name of a repository in which a worker could have written anything.
const SUFFIX: &str = ".untrusted";
/// The bytes of the longest path that git, or a shell that is to start it, can name (`PATH_MAX` of limits.h).
const LONGEST: usize = 4096;

/// Renames the entry `name` of the directory `path`, if it exists. Returns its former path.
pub(crate) fn put(path: &Path, name: &CStr) -> Result<Option<PathBuf>, WorktreeError> {
    match open::directory(path) {
        Ok(opened) => renamed(&opened.fd, path, name),
        Err(open::OpenError::Missing { .. }) => Ok(None),
        Err(error) => Err(WorktreeError::OpenTree(error)),
    }
}

/// Renames each `.git` beneath the top of a working tree, be it a directory, a file or a link. Returns their former
/// paths.
///
/// The index does not matter, because the next `git reset` may change it. The search never leaves the tree, and skips
/// paths that are too long for git. Directories that the worker closed are opened.
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

/// Gives the owner of a directory its permissions back. A directory of another user stays closed, because the worker
/// did not make it.
pub(crate) fn unlock(held: &OwnedFd, wanted: Mode) -> std::io::Result<()> {
    let stat = fstat(held)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    if mode.contains(wanted) || stat.st_uid != geteuid().as_raw() {
        return Ok(());
    }
    // fchmod(2) refuses an `O_PATH` descriptor; the path in /proc names the held directory.
    Ok(chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), mode | wanted)?)
}

/// Opens a directory of the tree, unless it is gone or closed by another user than the worker.
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
