//! Removes a directory tree that a worker has filled. Neither a symbolic link nor a mount point leads the removal out of
//! the tree.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::code::Code;
use crate::name::Name;
use crate::open::{self, OpenError};
use crate::removal::Removal;

/// Reasons why a tree could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The directory that contains the tree could not be opened.
    #[error("open the directory that holds the workspace")]
    OpenBase(#[source] OpenError),
    /// The top of the tree is not a directory, or could not be opened.
    #[error("open the workspace to remove it")]
    Open(#[source] OpenError),
    /// A file system is mounted inside the tree.
    #[error("{path} is a mount point inside the workspace")]
    MountPoint {
        /// The mount point; directories above it may have been moved to the top of the tree.
        path: PathBuf,
    },
    /// A directory could not be made writable.
    #[error("set mode 0700 on {path}")]
    Unlock { path: PathBuf, source: std::io::Error },
    /// A directory could not be listed.
    #[error("list {path}")]
    List { path: PathBuf, source: std::io::Error },
    /// An entry could not be removed.
    #[error("remove {path}")]
    Remove { path: PathBuf, source: std::io::Error },
}

impl TreeError {
    /// Returns the remedy for the reader.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::MountPoint { path } => Some(format!("unmount it first: `umount {}`", path.display())),
            Self::Open(OpenError::Symlink { path } | OpenError::NotADirectory { path }) => {
                Some(format!("it is not a workspace: look at {} and remove it by hand", path.display()))
            }
            Self::OpenBase(source) | Self::Open(source) => source.hint(),
            Self::Unlock { path, .. } | Self::Remove { path, .. } | Self::List { path, .. } => {
                Some(format!("see who owns {} and whether it is immutable (`lsattr -d`)", path.display()))
            }
        }
    }

    /// Returns the stable code of this failure.
    pub fn code(&self) -> Code {
        match self {
            Self::MountPoint { .. } => Code::WorkspaceMountInside,
            Self::Open(OpenError::Symlink { .. }) => Code::WorkspaceSymlink,
            Self::OpenBase(_)
            | Self::Open(_)
            | Self::Unlock { .. }
            | Self::List { .. }
            | Self::Remove { .. } => Code::WorkspaceNotRemoved,
        }
    }
}

/// Removes the directory `base/name` with everything in it.
///
/// Symbolic links are removed and not followed, and a mount point inside stops the removal. A process that may empty
/// the directory but not write `base` (a job process under the worker's uid) gets [`Removal::Emptied`]; a caller that
/// can write `base` then calls this function again. The stack and the number of open descriptors do not grow with the
/// depth of the tree: a subdirectory that is not empty is moved to the top of the tree and emptied there.
pub fn remove_tree(base: &Path, name: &Name) -> Result<Removal, TreeError> {
    let parent = match open::trusted(base) {
        Ok(parent) => parent,
        // git removes `.git/worktrees` with the last worktree.
        Err(OpenError::Missing { .. }) => return Ok(Removal::Absent),
        Err(source) => return Err(TreeError::OpenBase(source)),
    };
    let path = base.join(name.as_str());
    let top = match open::child(&parent.fd, Path::new(name.as_str()), &path) {
        Ok(top) => top,
        Err(OpenError::Missing { .. }) => return Ok(Removal::Absent),
        Err(source) if is_crossing(&source) => return Err(TreeError::MountPoint { path }),
        Err(source) => return Err(TreeError::Open(source)),
    };
    let mut emptying = Emptying { top: unlocked(&top.fd, &path)?, path, moved: 0 };
    emptying.run()?;
    match unlinkat(&parent.fd, name.as_str(), AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(Removal::Removed),
        Err(Errno::ACCESS | Errno::PERM) => Ok(Removal::Emptied),
        Err(errno) => Err(TreeError::Remove { path: emptying.path, source: errno.into() }),
    }
}

/// Returns true if a directory, which may be held by an `O_PATH` descriptor, has no entries.
pub(crate) fn is_empty(held: &OwnedFd) -> std::io::Result<bool> {
    let fd = open::readable(held)?;
    for entry in Dir::read_from(&fd)? {
        if !is_dot(entry?.file_name()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removal in progress of all that a directory contains.
struct Emptying {
    /// Directory to empty, open for reading.
    top: OwnedFd,
    /// Path of that directory, for errors.
    path: PathBuf,
    /// Number of the last name `.removing-NUMBER` that was tried for a moved directory.
    moved: u64,
}

impl Emptying {
    /// Empties the top directory. The listing changes while it is read, so an entry can be missed: only a pass that finds
    /// no entry ends the removal.
    fn run(&mut self) -> Result<(), TreeError> {
        let path = self.path.clone();
        loop {
            let mut found = false;
            for entry in listed(&self.top, &path)? {
                let entry =
                    entry.map_err(|errno| TreeError::List { path: path.clone(), source: errno.into() })?;
                let name = entry.file_name();
                if is_dot(name) {
                    continue;
                }
                found = true;
                let shown = shown(&path, name);
                if self.is_directory(entry.file_type(), name, &shown)? {
                    self.empty(name, &shown)?;
                } else {
                    remove(&self.top, name, AtFlags::empty(), &shown)?;
                }
            }
            if !found {
                return Ok(());
            }
        }
    }

    /// Removes a directory in the top directory. Its subdirectories that are not empty are moved to the top.
    fn empty(&mut self, name: &CStr, path: &Path) -> Result<(), TreeError> {
        let Some(directory) = opened(&self.top, name, path)? else { return Ok(()) };
        for entry in listed(&directory, path)? {
            let entry =
                entry.map_err(|errno| TreeError::List { path: path.to_owned(), source: errno.into() })?;
            let inner = entry.file_name();
            if is_dot(inner) {
                continue;
            }
            let shown = shown(path, inner);
            // For a directory, unlink fails with EISDIR on Linux and with EPERM by POSIX (unlink(2)).
            match unlinkat(&directory, inner, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => match unlinkat(&directory, inner, AtFlags::REMOVEDIR) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(Errno::NOTEMPTY | Errno::EXIST) => self.raise(&directory, inner, &shown)?,
                    Err(errno) => return Err(refused(&shown, errno)),
                },
                Err(errno) => return Err(refused(&shown, errno)),
            }
        }
        match unlinkat(&self.top, name, AtFlags::REMOVEDIR) {
            // The listing may have missed an entry. The next pass over the top then finds this directory again.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(refused(path, errno)),
        }
    }

    /// Moves a directory that is not empty to the top, under a free name.
    fn raise(&mut self, from: &OwnedFd, name: &CStr, path: &Path) -> Result<(), TreeError> {
        // A move to another parent rewrites the entry ".." of the directory, which needs write permission on it
        // (EACCES in rename(2)). Opening the directory sets its mode.
        drop(opened(from, name, path)?);
        loop {
            self.moved += 1;
            match renameat(from, name, &self.top, format!(".removing-{}", self.moved)) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // A worker may have used the name. An empty directory of that name is replaced, which does no harm:
                // it would be removed too.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                Err(errno) => return Err(refused(path, errno)),
            }
        }
    }

    fn is_directory(&self, listed: FileType, name: &CStr, path: &Path) -> Result<bool, TreeError> {
        match listed {
            // Some file systems list entries without their types (readdir(3)).
            FileType::Unknown => match statat(&self.top, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
                Err(errno) => Err(refused(path, errno)),
            },
            kind => Ok(kind == FileType::Directory),
        }
    }
}

/// Opens a directory in `parent` for reading, and makes it writable; none if it no longer exists.
fn opened(parent: &OwnedFd, name: &CStr, path: &Path) -> Result<Option<OwnedFd>, TreeError> {
    match open::child(parent, Path::new(OsStr::from_bytes(name.to_bytes())), path) {
        Ok(opened) => unlocked(&opened.fd, path).map(Some),
        Err(OpenError::Missing { .. }) => Ok(None),
        Err(source) if is_crossing(&source) => Err(TreeError::MountPoint { path: path.to_owned() }),
        Err(source) => Err(TreeError::Open(source)),
    }
}

/// Gives the owner of a held directory all rights on it, and opens it for reading.
fn unlocked(held: &OwnedFd, path: &Path) -> Result<OwnedFd, TreeError> {
    let failed = |source| TreeError::Unlock { path: path.to_owned(), source };
    let stat = rustix::fs::fstat(held).map_err(|errno| failed(errno.into()))?;
    if !Mode::from_raw_mode(stat.st_mode).contains(Mode::RWXU) {
        open::make_private(held).map_err(failed)?;
    }
    open::readable(held).map_err(|source| TreeError::List { path: path.to_owned(), source })
}

fn listed(directory: &OwnedFd, path: &Path) -> Result<Dir, TreeError> {
    Dir::read_from(directory).map_err(|errno| TreeError::List { path: path.to_owned(), source: errno.into() })
}

fn remove(from: &OwnedFd, name: &CStr, flags: AtFlags, path: &Path) -> Result<(), TreeError> {
    match unlinkat(from, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(refused(path, errno)),
    }
}

fn refused(path: &Path, errno: Errno) -> TreeError {
    let path = path.to_owned();
    // On a mount point, rmdir and rename fail with EBUSY; on a bind mount, rename fails with EXDEV.
    if matches!(errno, Errno::BUSY | Errno::XDEV) {
        TreeError::MountPoint { path }
    } else {
        TreeError::Remove { path, source: errno.into() }
    }
}

fn is_crossing(error: &OpenError) -> bool {
    matches!(error, OpenError::Open { source, .. } if source.raw_os_error() == Some(Errno::XDEV.raw_os_error()))
}

fn is_dot(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn shown(path: &Path, name: &CStr) -> PathBuf {
    path.join(OsStr::from_bytes(name.to_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn name() -> Name {
        Name::new("t_0badcafe").unwrap()
    }

    #[test]
    fn a_tree_goes_with_all_it_holds_and_what_its_links_name_stays() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs_err::write(outside.path().join("kept"), "").unwrap();
        let top = base.path().join("t_0badcafe");
        fs_err::create_dir_all(top.join("a/b/c")).unwrap();
        fs_err::write(top.join("a/b/file"), "").unwrap();
        fs_err::write(top.join(".removing-1"), "").unwrap();
        symlink(outside.path(), top.join("link")).unwrap();
        symlink(outside.path(), top.join("a/b/link")).unwrap();
        fs_err::set_permissions(top.join("a/b"), PermissionsExt::from_mode(0o000)).unwrap();
        fs_err::set_permissions(top.join("a"), PermissionsExt::from_mode(0o555)).unwrap();
        assert_eq!(remove_tree(base.path(), &name()).unwrap(), Removal::Removed);
        assert!(!top.exists() && outside.path().join("kept").exists());
        assert_eq!(remove_tree(base.path(), &name()).unwrap(), Removal::Absent);
        assert_eq!(remove_tree(&base.path().join("gone"), &name()).unwrap(), Removal::Absent);
    }

    #[test]
    fn a_link_in_the_place_of_the_tree_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs_err::write(outside.path().join("kept"), "").unwrap();
        symlink(outside.path(), base.path().join("t_0badcafe")).unwrap();
        assert_eq!(remove_tree(base.path(), &name()).unwrap_err().code(), Code::WorkspaceSymlink);
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn a_tree_deeper_than_paths_and_descriptors_allow_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let top = base.path().join("t_0badcafe");
        fs_err::create_dir(&top).unwrap();
        let mut at = open::directory(&top.canonicalize().unwrap()).unwrap().fd;
        for _ in 0..3000 {
            rustix::fs::mkdirat(&at, "deeper", Mode::RWXU).unwrap();
            at = open::child(&at, Path::new("deeper"), Path::new("deeper")).unwrap().fd;
        }
        assert_eq!(remove_tree(base.path(), &name()).unwrap(), Removal::Removed);
        assert!(!top.exists());
    }

    #[test]
    fn who_may_not_write_the_base_empties_the_tree_and_the_owner_of_the_base_ends_it() {
        if !rustix::process::geteuid().is_root() {
            skips::skip("needs root");
            return;
        }
        let base = tempfile::tempdir().unwrap();
        fs_err::set_permissions(base.path(), PermissionsExt::from_mode(0o711)).unwrap();
        let owner = crate::Owner { uid: 60_001, gid: 60_001 };
        let path = crate::scratch::prepare(base.path(), &name(), Some(owner)).unwrap().path;
        let as_worker = || {
            std::thread::scope(|scope| {
                // The kernel keeps user ids by thread; this one ends as the worker.
                let worker = scope.spawn(|| {
                    let uid = rustix::process::Uid::from_raw(owner.uid);
                    rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
                    fs_err::create_dir_all(path.join("a/b")).unwrap();
                    remove_tree(base.path(), &name())
                });
                worker.join().unwrap().unwrap()
            })
        };
        assert_eq!(as_worker(), Removal::Emptied);
        assert_eq!(fs_err::read_dir(&path).unwrap().count(), 0);
        assert_eq!(remove_tree(base.path(), &name()).unwrap(), Removal::Removed);
    }

    #[test]
    fn a_mount_inside_stops_the_removal_and_keeps_its_content() {
        let base = tempfile::tempdir().unwrap();
        let mount = base.path().join("t_0badcafe/a/mount");
        fs_err::create_dir_all(&mount).unwrap();
        let script =
            r#"mount -t tmpfs none "$1" || exit 99; touch "$1/kept" && exec "$2" --ignored --exact "$3""#;
        let status = std::process::Command::new("unshare")
            .args(["-m", "--propagation", "private", "sh", "-c", script, "sh"])
            .arg(&mount)
            .arg(std::env::current_exe().unwrap())
            .arg("tree::tests::stops_at_the_mount_inside")
            .env("TREE_BASE", base.path())
            .status();
        match status.map(|status| status.code()) {
            Ok(Some(0)) => {}
            // 1: unshare itself was refused; 99: the mount was.
            Err(_) | Ok(Some(1 | 99)) => skips::skip("needs to mount"),
            Ok(code) => panic!("the removal with a mount inside: {code:?}"),
        }
    }

    #[test]
    #[ignore = "runs in the mount namespace of a_mount_inside_stops_the_removal_and_keeps_its_content"]
    fn stops_at_the_mount_inside() {
        let Some(base) = std::env::var_os("TREE_BASE").map(PathBuf::from) else { return };
        assert_eq!(remove_tree(&base, &name()).unwrap_err().code(), Code::WorkspaceMountInside);
        let mount = base.join("t_0badcafe/a/mount");
        assert!(mount.join("kept").exists() || base.join("t_0badcafe/mount/kept").exists());
    }
}
