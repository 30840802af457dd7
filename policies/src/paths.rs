//! Opens the paths of a policy. A process that can write beneath a path cannot redirect it (`openat2(2)`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, readlink};
use rustix::io::Errno;

/// Limit on the symbolic links of one path. A longer chain counts as a loop (`path_resolution(7)`).
const LINKS_MAX: usize = 40;

/// Reason why a path of a policy or of a run cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path cannot be opened.
    #[error("open {}: {source}", .path.display())]
    Open { path: PathBuf, source: Errno },
    /// The path goes through a symbolic link where none may be.
    #[error("open {}: it goes through a symbolic link; name the real path", .path.display())]
    Linked { path: PathBuf },
    /// The path goes through a symbolic link that a worker could have planted.
    #[error("open {}: {} is a symbolic link in a directory that a worker writes", .path.display(), .link.display())]
    Planted { path: PathBuf, link: PathBuf },
    /// The path is not absolute, or contains `..`.
    #[error("open {}: the path must be absolute and without `..`", .path.display())]
    NotAbsolute { path: PathBuf },
    /// The path is not the directory or the device that it must be.
    #[error("open {}: it is not a {wanted}", .path.display())]
    Kind { path: PathBuf, wanted: &'static str },
}

impl PathError {
    /// Returns the requested path.
    pub fn path(&self) -> &Path {
        match self {
            Self::Open { path, .. }
            | Self::Linked { path }
            | Self::Planted { path, .. }
            | Self::NotAbsolute { path }
            | Self::Kind { path, .. } => path,
        }
    }

    /// Returns true if the path is missing, or has become another file than the file that was opened.
    pub(crate) fn is_changed(&self) -> bool {
        match self {
            Self::Open { source, .. } => {
                matches!(*source, Errno::NOENT | Errno::NOTDIR | Errno::STALE | Errno::LOOP)
            }
            Self::Linked { .. } | Self::Planted { .. } | Self::Kind { .. } => true,
            Self::NotAbsolute { .. } => false,
        }
    }

    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Open { source: Errno::NOENT | Errno::NOTDIR, .. })
    }
}

/// Open file (`O_PATH`) with its path and its identity.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Path of the file, which contained no symbolic link when the file was opened.
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) inode: Inode,
    fd: OwnedFd,
}

/// Identity of a file of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
}

/// Kind of the opened file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    Device,
    Other,
}

/// Symbolic link on the way to a granted path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) at: PathBuf,
    pub(crate) target: PathBuf,
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Opened {
    fn new(path: PathBuf, fd: OwnedFd) -> Result<Self, PathError> {
        let stat = fstat(&fd).map_err(|source| PathError::Open { path: path.clone(), source })?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Kind::Directory,
            FileType::CharacterDevice | FileType::BlockDevice => Kind::Device,
            _ => Kind::Other,
        };
        Ok(Self { path, kind, inode: Inode { device: stat.st_dev, number: stat.st_ino }, fd })
    }

    /// Opens an absolute path. Refuses a path with a symbolic link.
    pub(crate) fn real(path: &Path) -> Result<Self, PathError> {
        if !is_plain(path) {
            return Err(PathError::NotAbsolute { path: path.to_owned() });
        }
        Self::at(CWD, path, path, ResolveFlags::NO_SYMLINKS)
    }

    /// Opens the same path beneath another root directory. Fails with ESTALE if it is another file there.
    pub(crate) fn same_under(&self, root: impl AsFd) -> Result<Self, PathError> {
        let inside = self.path.strip_prefix("/").unwrap_or(&self.path);
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        let again = Self::at(root, inside, &self.path, ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH)?;
        if again.inode == self.inode {
            Ok(again)
        } else {
            Err(PathError::Open { path: self.path.clone(), source: Errno::STALE })
        }
    }

    /// Opens a path relative to this directory. Refuses a path that has a symbolic link or leads out of the directory.
    pub(crate) fn beneath(&self, inside: &Path) -> Result<Self, PathError> {
        let whole = self.path.join(inside);
        Self::at(&self.fd, inside, &whole, ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH)
    }

    pub(crate) fn again(&self) -> Result<Self, PathError> {
        let fd = self.fd.try_clone().map_err(|error| PathError::Open {
            path: self.path.clone(),
            source: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })?;
        Ok(Self { path: self.path.clone(), kind: self.kind, inode: self.inode, fd })
    }

    /// Opens an absolute path, and follows its symbolic links. Refuses a link in one of the `writable` directories,
    /// because a worker may have made it. Also returns the links, so that they can be made again in another file system
    /// view.
    pub(crate) fn followed(path: &Path, writable: &[PathBuf]) -> Result<(Self, Vec<Link>), PathError> {
        if !is_plain(path) {
            return Err(PathError::NotAbsolute { path: path.to_owned() });
        }
        let fail = |source| PathError::Open { path: path.to_owned(), source };
        // The kernel would follow the links by itself. Here, each link is checked before it is followed.
        let mut links = Vec::new();
        let mut done = PathBuf::from("/");
        let mut rest: Vec<PathBuf> = pieces(path);
        while let Some(piece) = rest.pop() {
            if piece == Path::new("..") {
                done.pop();
                continue;
            }
            let here = done.join(&piece);
            match readlink(&here, Vec::new()) {
                Ok(target) => {
                    if writable.iter().any(|base| here.starts_with(base)) {
                        return Err(PathError::Planted { path: path.to_owned(), link: here });
                    }
                    if links.len() == LINKS_MAX {
                        return Err(fail(Errno::LOOP));
                    }
                    let target =
                        PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(
                            target.into_bytes(),
                        ));
                    if target.is_absolute() {
                        done = PathBuf::from("/");
                    }
                    rest.extend(pieces(&target));
                    links.push(Link { at: here, target });
                }
                // readlink(2) fails with EINVAL at any file that is not a link.
                Err(Errno::INVAL) => done = here,
                Err(source) => return Err(fail(source)),
            }
        }
        // The open refuses links, so a link that was made since the check is not followed.
        Ok((Self::real(&done)?, links))
    }

    fn at(dir: impl AsFd, inside: &Path, whole: &Path, resolve: ResolveFlags) -> Result<Self, PathError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = openat2(dir, inside, flags, Mode::empty(), resolve).map_err(|source| match source {
            Errno::LOOP => PathError::Linked { path: whole.to_owned() },
            source => PathError::Open { path: whole.to_owned(), source },
        })?;
        Self::new(whole.to_owned(), fd)
    }

    /// Returns the file if it is a directory.
    pub(crate) fn directory(self) -> Result<Self, PathError> {
        match self.kind {
            Kind::Directory => Ok(self),
            Kind::Device | Kind::Other => Err(PathError::Kind { path: self.path, wanted: "directory" }),
        }
    }
}

/// Returns the components of a path in reverse, ready to be popped.
fn pieces(path: &Path) -> Vec<PathBuf> {
    let named =
        path.components().filter(|piece| matches!(piece, Component::Normal(_) | Component::ParentDir));
    let mut pieces: Vec<PathBuf> = named.map(|piece| PathBuf::from(piece.as_os_str())).collect();
    pieces.reverse();
    pieces
}

/// Returns true if a path is absolute and does not contain `..`.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.is_absolute() && path.components().all(|piece| piece != Component::ParentDir)
}

/// Returns the path with all symbolic links resolved. In a missing path, only the links of its existing part are
/// resolved.
pub(crate) fn leads_to(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => leads_to(parent).join(name),
        (Err(_), _, _) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_refused_where_real_paths_are_needed() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc", dir.path().join("link")).unwrap();
        let error = Opened::real(&dir.path().join("link")).unwrap_err();
        assert!(matches!(error, PathError::Linked { .. }), "{error}");
        let error = Opened::real(&dir.path().join("link/passwd")).unwrap_err();
        assert!(matches!(error, PathError::Linked { .. }), "{error}");
    }

    #[test]
    fn a_path_beneath_a_writable_base_never_leaves_it() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc", dir.path().join("cache")).unwrap();
        let base = Opened::real(dir.path()).unwrap();
        assert!(matches!(base.beneath(Path::new("cache")), Err(PathError::Linked { .. })));
        assert!(base.beneath(Path::new("../x")).is_err());
    }

    #[test]
    fn links_of_the_system_are_followed_and_returned() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("usr/bin")).unwrap();
        symlink("usr/bin", dir.path().join("bin")).unwrap();
        let (opened, links) = Opened::followed(&dir.path().join("bin"), &[]).unwrap();
        assert_eq!(opened.path, dir.path().join("usr/bin"));
        assert_eq!(links, [Link { at: dir.path().join("bin"), target: "usr/bin".into() }]);
    }

    #[test]
    fn a_planted_link_is_named() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc", dir.path().join("cache")).unwrap();
        let error = Opened::followed(&dir.path().join("cache"), &[dir.path().to_owned()]).unwrap_err();
        assert!(matches!(error, PathError::Planted { .. }), "{error}");
    }

    #[test]
    fn a_path_is_found_again_under_another_root_without_following_a_link() {
        let (dir, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = dir.path().canonicalize().unwrap();
        let opened = Opened::real(&dir).unwrap();
        assert!(opened.same_under(std::fs::File::open("/").unwrap()).is_ok());
        let first: PathBuf = dir.components().take(2).collect();
        symlink(&first, root.path().join(first.strip_prefix("/").unwrap())).unwrap();
        let error = opened.same_under(std::fs::File::open(root.path()).unwrap()).unwrap_err();
        assert!(matches!(error, PathError::Linked { .. }), "{error}");
    }
}
