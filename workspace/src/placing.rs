//! Places a file beneath a directory that a worker may write, and removes one there. Each part of the path is opened without
//! following links, so that no entry of the worker leads out of the directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::open::{self, OpenError};

/// Name of the file until it is complete.
const DRAFT: &str = ".supervisor-draft";

/// Reasons why a file could not be placed or removed.
#[derive(Debug, thiserror::Error)]
pub enum PlacingError {
    /// The directory itself could not be opened.
    #[error("the directory cannot be opened: {0}")]
    Directory(#[source] OpenError),
    /// The path is absolute or empty, or contains `.` or `..`.
    #[error("{} is not a path inside of the directory", path.display())]
    Outside { path: PathBuf },
    /// A part of the path is not a directory.
    #[error("{} is not a directory", path.display())]
    InTheWay { path: PathBuf },
    /// The file could not be removed.
    #[error("remove {}", path.display())]
    Remove {
        path: PathBuf,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// The file could not be written.
    #[error("write {}", path.display())]
    Write {
        path: PathBuf,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
}

/// Places a file at `path` beneath `dir`, and replaces an existing file. The caller owns the file, and its mode is 0600.
/// Missing directories are made, no symbolic link is followed, and no entry that a worker may have planted, such as a FIFO,
/// makes the call wait.
///
/// # Errors
/// A part of the path is not a directory, or the file cannot be written; an existing file is then unchanged.
pub fn place_file(dir: &Path, path: &Path, bytes: &[u8]) -> Result<(), PlacingError> {
    let wrong = |errno: Errno| PlacingError::Write { path: path.to_owned(), source: errno.into() };
    let (parents, name) = inside(path)?;
    let mut at = open::directory(dir).map_err(PlacingError::Directory)?.fd;
    let mut shown = PathBuf::new();
    for part in parents.components() {
        shown.push(part);
        at = enter(&at, Path::new(part.as_os_str())).map_err(|errno| in_the_way(errno, &shown, wrong))?;
    }
    // An interrupted call may have left its draft.
    match unlinkat(&at, DRAFT, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(wrong(errno)),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let draft = openat(&at, DRAFT, flags, Mode::RUSR | Mode::WUSR).map_err(wrong)?;
    let written = File::from(draft).write_all(bytes);
    let placed = written.and_then(|()| Ok(renameat(&at, DRAFT, &at, name)?));
    placed.map_err(|source| PlacingError::Write { path: path.to_owned(), source })
}

/// Removes the file at `path` beneath `dir`. A link is removed, and its target stays. A directory at `path` stays. No
/// symbolic link is followed. A missing file is no error.
///
/// # Errors
/// A part of the path is not a directory, or the file cannot be removed.
pub fn remove(dir: &Path, path: &Path) -> Result<(), PlacingError> {
    let wrong = |errno: Errno| PlacingError::Remove { path: path.to_owned(), source: errno.into() };
    let (parents, name) = inside(path)?;
    let mut at = open::directory(dir).map_err(PlacingError::Directory)?.fd;
    let mut shown = PathBuf::new();
    for part in parents.components() {
        shown.push(part);
        at = match openat(&at, part.as_os_str(), DIRECTORY, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(in_the_way(errno, &shown, wrong)),
        };
    }
    match unlinkat(&at, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
        Err(errno) => Err(wrong(errno)),
    }
}

/// Flags that open a directory of the path.
const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Returns the directories of a path and the name of its file. Refuses a path that could lead out of its directory.
fn inside(path: &Path) -> Result<(&Path, &OsStr), PlacingError> {
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let name = path.file_name().filter(|_| is_inside);
    let name = name.ok_or_else(|| PlacingError::Outside { path: path.to_owned() })?;
    Ok((path.parent().unwrap_or(Path::new("")), name))
}

fn in_the_way(errno: Errno, path: &Path, otherwise: impl FnOnce(Errno) -> PlacingError) -> PlacingError {
    match errno {
        Errno::NOTDIR | Errno::LOOP => PlacingError::InTheWay { path: path.to_owned() },
        errno => otherwise(errno),
    }
}

/// Opens a directory in another one, and makes it if nothing has its name.
fn enter(at: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
    match openat(at, name, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => {
            mkdirat(at, name, Mode::RWXU)?;
            openat(at, name, DIRECTORY, Mode::empty())
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_replaces_what_is_there_and_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let path = Path::new(".x/y/auth.json");
        place_file(&top, path, b"one").unwrap();
        // What a killed try has left, and what a worker made of it.
        fs_err::write(top.join(".x/y").join(DRAFT), "half").unwrap();
        fs_err::remove_file(top.join(path)).unwrap();
        symlink("/etc/hostname", top.join(path)).unwrap();
        place_file(&top, path, b"two").unwrap();
        assert_eq!(fs_err::read(top.join(path)).unwrap(), b"two");
        let meta = fs_err::symlink_metadata(top.join(path)).unwrap();
        assert!(meta.is_file() && meta.permissions().mode() & 0o777 == 0o600);
        assert!(!top.join(".x/y").join(DRAFT).exists());
    }

    #[test]
    fn what_is_in_the_place_of_a_file_goes_and_what_a_link_leads_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (home, other) = (top.join("home"), top.join("other"));
        for made in [&home, &other, &home.join(".x"), &home.join("directory")] {
            fs_err::create_dir(made).unwrap();
        }
        fs_err::write(other.join("auth.json"), "other").unwrap();
        fs_err::write(home.join(".x/auth.json"), "planted").unwrap();
        symlink(other.join("auth.json"), home.join("auth.json")).unwrap();
        symlink(&other, home.join("way")).unwrap();
        for path in [".x/auth.json", "auth.json"] {
            remove(&home, Path::new(path)).unwrap();
            assert!(fs_err::symlink_metadata(home.join(path)).is_err(), "{path}");
        }
        for path in ["auth.json", "none/auth.json", "directory"] {
            remove(&home, Path::new(path)).unwrap();
        }
        let removed = remove(&home, Path::new("way/auth.json"));
        assert!(matches!(removed, Err(PlacingError::InTheWay { .. })), "{removed:?}");
        let removed = remove(&home, Path::new("../other/auth.json"));
        assert!(matches!(removed, Err(PlacingError::Outside { .. })), "{removed:?}");
        assert!(home.join("directory").is_dir());
        assert_eq!(fs_err::read(other.join("auth.json")).unwrap(), b"other");
    }

    #[test]
    fn nothing_outside_of_the_directory_is_written_whatever_was_planted() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (home, other) = (top.join("home"), top.join("other"));
        for made in [&home, &other] {
            fs_err::create_dir(made).unwrap();
        }
        symlink(&other, home.join(".x")).unwrap();
        fs_err::write(home.join("file"), "").unwrap();
        for path in [".x/auth.json", "file/auth.json"] {
            let placed = place_file(&home, Path::new(path), b"secret");
            assert!(matches!(placed, Err(PlacingError::InTheWay { .. })), "{path}: {placed:?}");
        }
        for path in ["../other/a", "/etc/a", "", "a/../../b"] {
            let placed = place_file(&home, Path::new(path), b"secret");
            assert!(matches!(placed, Err(PlacingError::Outside { .. })), "{path}: {placed:?}");
        }
        symlink(other.join("new"), home.join("auth.json")).unwrap();
        place_file(&home, Path::new("auth.json"), b"secret").unwrap();
        fs_err::create_dir(home.join("taken")).unwrap();
        assert!(place_file(&home, Path::new("taken"), b"secret").is_err());
        assert_eq!(fs_err::read_dir(&other).unwrap().count(), 0);
        symlink(&home, top.join("link")).unwrap();
        let placed = place_file(&top.join("link"), Path::new("a"), b"secret");
        assert!(matches!(placed, Err(PlacingError::Directory(_))), "{placed:?}");
    }
}
