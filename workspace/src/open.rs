//! Opens directories without following a symbolic link that a worker could have planted.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;

use crate::code::Code;

/// Reasons why a directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path does not start with a slash.
    #[error("{path} is relative: its meaning would depend on the working directory of the daemon")]
    Relative { path: PathBuf },
    /// Nothing exists at the path.
    #[error("no directory at {path}")]
    Missing { path: PathBuf },
    /// The path does not lead to a directory.
    #[error("{path} is not a directory")]
    NotADirectory { path: PathBuf },
    /// The path goes through a symbolic link, or is one.
    #[error("{path} leads through a symbolic link")]
    Symlink { path: PathBuf },
    /// The kernel refused.
    #[error("open {path}")]
    Open { path: PathBuf, source: std::io::Error },
    /// The open directory could not be examined.
    #[error("examine {path}")]
    Examine { path: PathBuf, source: std::io::Error },
}

impl OpenError {
    /// Returns the remedy for the reader.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Relative { path } => {
                Some(format!("write the absolute path, such as /path/to/{}", path.display()))
            }
            Self::Missing { path } => Some(format!("create it with `mkdir -p {}`", path.display())),
            Self::NotADirectory { .. } => Some("name the directory that holds it".to_owned()),
            Self::Open { path, source } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                Some(format!("let this user enter and read {}", path.display()))
            }
            // The target is not named, because a tenant's user must not learn whether it exists.
            Self::Symlink { path } => {
                Some(format!("name the directory itself, as `realpath -m {}` prints it", path.display()))
            }
            Self::Open { .. } | Self::Examine { .. } => None,
        }
    }

    /// Returns the stable code of this refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::Relative { .. } => Code::WorkspacePathRelative,
            Self::Missing { .. } => Code::WorkspaceMissing,
            Self::NotADirectory { .. } => Code::WorkspaceNotADirectory,
            Self::Symlink { .. } => Code::WorkspaceSymlink,
            Self::Open { .. } | Self::Examine { .. } => Code::WorkspaceUnreadable,
        }
    }
}

/// Open directory, with its known properties.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
}

/// Opens a directory by an absolute path, of which no component may be a symbolic link.
pub(crate) fn directory(path: &Path) -> Result<Opened, OpenError> {
    if !path.is_absolute() {
        return Err(OpenError::Relative { path: path.to_owned() });
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    examined(path, openat2(CWD, path, flags, Mode::empty(), resolve))
}

/// Opens the directory `name` directly beneath `parent`. It may be neither a symbolic link nor a mount point.
pub(crate) fn child(parent: impl AsFd, name: &Path, shown: &Path) -> Result<Opened, OpenError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    examined(shown, openat2(parent, name, flags, Mode::empty(), resolve))
}

/// Opens a directory of the daemon, whose path may lead through symbolic links.
pub(crate) fn trusted(path: &Path) -> Result<Opened, OpenError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    examined(path, rustix::fs::openat(CWD, path, flags, Mode::empty()))
}

/// Sets mode 0700 on a directory that an `O_PATH` descriptor holds. fchmod refuses such a descriptor; the path in /proc
/// names the open directory, whatever its name is now.
pub(crate) fn make_private(held: &OwnedFd) -> std::io::Result<()> {
    Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::RWXU)?)
}

/// Opens a directory as [`child`] does, for reading at once.
pub(crate) fn readable_child(parent: impl AsFd, name: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    Ok(openat2(parent, name, flags, Mode::empty(), resolve)?)
}

/// Opens for reading the directory that an `O_PATH` descriptor holds.
pub(crate) fn readable(held: &OwnedFd) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(held, ".", flags, Mode::empty())?)
}

fn examined(shown: &Path, opened: Result<OwnedFd, Errno>) -> Result<Opened, OpenError> {
    let path = shown.to_owned();
    let fd = opened.map_err(|errno| match errno {
        Errno::NOENT => OpenError::Missing { path: path.clone() },
        // With O_DIRECTORY and O_NOFOLLOW, a link as the last component is reported as ENOTDIR.
        Errno::NOTDIR if !shown.is_symlink() => OpenError::NotADirectory { path: path.clone() },
        Errno::LOOP | Errno::NOTDIR => OpenError::Symlink { path: path.clone() },
        errno => OpenError::Open { path: path.clone(), source: errno.into() },
    })?;
    let stat = fstat(&fd).map_err(|errno| OpenError::Examine { path, source: errno.into() })?;
    Ok(Opened { fd, stat })
}
