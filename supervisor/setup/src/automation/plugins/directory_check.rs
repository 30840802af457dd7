//! Checks the directory of a plugin: only its owner may write it, it contains no links, and its size is limited.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, Stat, fstat, openat};

/// Directory that the plugin may write.
pub const STATE: &str = "state";
/// Limit on the number of files and directories.
const FILES: usize = 1000;
/// Limit on their total size, in bytes.
const BYTES: u64 = 16 << 20;
const DEPTH: usize = 8;

/// Purpose for which the directory of a plugin is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryUse {
    /// Executed in place: the daemon's user or root must own it, and no other user may write it.
    Installed,
    /// Copied only.
    Offered,
}

/// A file or a directory of a plugin, open.
#[derive(Debug)]
pub struct PluginEntry<'a> {
    /// Path within the plugin's directory.
    pub path: &'a Path,
    pub stat: Stat,
    /// None for a directory.
    pub file: Option<File>,
}

/// Reason why a directory cannot be a plugin's.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is a symbolic link, which could lead anywhere; a plugin has none", .0.display())]
    Link(PathBuf),
    #[error("{} is neither a file nor a directory", .0.display())]
    Special(PathBuf),
    #[error("{} belongs to the user {uid}, who is neither that of the daemon nor root", .path.display())]
    Foreign { path: PathBuf, uid: u32 },
    #[error("others than its owner can write {} (mode {mode:04o}): chmod go-w", .path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("it has more than {FILES} files")]
    Many,
    #[error("its files have more than {} MiB", BYTES >> 20)]
    Large,
    #[error("{} is deeper than {DEPTH} directories", .0.display())]
    Deep(PathBuf),
}

/// A walk through the directory of a plugin.
struct Walk<'a> {
    root: &'a Path,
    directory_use: DirectoryUse,
    files: usize,
    bytes: u64,
    each: &'a mut dyn FnMut(&PluginEntry<'_>) -> io::Result<()>,
}

/// Checks everything in a plugin's directory, except its state.
pub fn inspect(dir: &Path, directory_use: DirectoryUse) -> Result<(), Unfit> {
    walk(dir, directory_use, &mut |_| Ok(()))
}

/// Does the same, and passes each file and directory to `each`, a directory before its contents. No link is followed,
/// even if entries change meanwhile.
pub fn walk(
    dir: &Path,
    directory_use: DirectoryUse,
    each: &mut dyn FnMut(&PluginEntry<'_>) -> io::Result<()>,
) -> Result<(), Unfit> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = rustix::fs::open(dir, flags, Mode::empty());
    let open = open.map_err(|e| refused(dir.to_owned(), e))?;
    let mut walk = Walk { root: dir, directory_use, files: 0, bytes: 0, each };
    if let Some(parent) = dir
        .parent()
        .filter(|parent| directory_use == DirectoryUse::Installed && !parent.as_os_str().is_empty())
    {
        // A user who may write the parent could replace this directory.
        let held = rustix::fs::stat(parent).map_err(|e| refused(parent.to_owned(), e))?;
        walk.check(parent, &held)?;
    }
    walk.check(dir, &stat(dir, open.as_fd())?)?;
    walk.enter(&open, Path::new(""), 0)
}

fn stat(path: &Path, fd: BorrowedFd<'_>) -> Result<Stat, Unfit> {
    fstat(fd).map_err(|e| refused(path.to_owned(), e))
}

/// Interprets a failed open: `O_NOFOLLOW` reports a link as `ELOOP`.
fn refused(path: PathBuf, error: rustix::io::Errno) -> Unfit {
    match error {
        rustix::io::Errno::LOOP => Unfit::Link(path),
        rustix::io::Errno::NOTDIR if path.is_symlink() => Unfit::Link(path),
        rustix::io::Errno::NXIO => Unfit::Special(path),
        error => Unfit::Unreadable { path, source: error.into() },
    }
}

impl Walk<'_> {
    fn enter(&mut self, dir: &OwnedFd, path: &Path, depth: usize) -> Result<(), Unfit> {
        let whole = self.root.join(path);
        if depth > DEPTH {
            return Err(Unfit::Deep(whole));
        }
        let unreadable = |e: rustix::io::Errno| refused(whole.clone(), e);
        for entry in Dir::read_from(dir).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." || (depth == 0 && name == STATE) {
                continue;
            }
            self.files += 1;
            if self.files > FILES {
                return Err(Unfit::Many);
            }
            self.check_entry(dir.as_fd(), &path.join(name), name, depth)?;
        }
        Ok(())
    }

    fn check_entry(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &Path,
        name: &OsStr,
        depth: usize,
    ) -> Result<(), Unfit> {
        let whole = self.root.join(path);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = openat(dir, name, flags, Mode::empty()).map_err(|e| refused(whole.clone(), e))?;
        let stat = stat(&whole, open.as_fd())?;
        self.check(&whole, &stat)?;
        let unreadable = |source| Unfit::Unreadable { path: whole.clone(), source };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                (self.each)(&PluginEntry { path, stat, file: None }).map_err(unreadable)?;
                self.enter(&open, path, depth + 1)
            }
            FileType::RegularFile => {
                self.bytes = self.bytes.saturating_add(stat.st_size.unsigned_abs());
                if self.bytes > BYTES {
                    return Err(Unfit::Large);
                }
                (self.each)(&PluginEntry { path, stat, file: Some(open.into()) }).map_err(unreadable)
            }
            FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Err(Unfit::Special(whole)),
        }
    }

    fn check(&self, path: &Path, stat: &Stat) -> Result<(), Unfit> {
        if self.directory_use == DirectoryUse::Offered {
            return Ok(());
        }
        let (daemon_uid, mode) = (nix::unistd::geteuid().as_raw(), stat.st_mode & 0o7777);
        if stat.st_uid != daemon_uid && stat.st_uid != 0 {
            return Err(Unfit::Foreign { path: path.to_owned(), uid: stat.st_uid });
        }
        if mode & 0o022 != 0 {
            return Err(Unfit::Open { path: path.to_owned(), mode });
        }
        Ok(())
    }
}
