//! Copies the sessions of a task for a fork. The copy has only regular files and directories, is limited in size, and
//! stays closed until it is complete.
//!
//! The source was written by a worker and is hostile. Each directory is opened beneath the one before, so that no path
//! leads out of the source. Links, special files and files of other users are not copied. Unreadable files are left out
//! and counted, because a single one should not prevent a fork. Holes stay holes, and only written bytes count.
//!
//! The two tasks share no file: a hard link or a common directory would let two workers write to one session. A copy
//! that is too large blocks the fork at once. It does not count as a shortage of the host, because a tenant could
//! otherwise stop the starts of all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use policies::Identity;
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, SeekFrom as Seek, Uid, fchown, fstat, fstatvfs, mkdirat,
    openat, seek, statat,
};
use rustix::io::Errno;
use shim::shortage::{is_shortage, unless_short};

/// Limit on the depth of directories in a copy. Deeper directories are left out.
const DEPTH: usize = 32;
/// Largest number of bytes that are written between two checks of the free disk space.
const PIECE: u64 = 8 << 20;

/// Limits of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Limit on files and directories.
    entries: usize,
    /// Limit on the written bytes.
    bytes: u64,
    /// Function that returns the free bytes of the target's file system.
    free: fn(BorrowedFd<'_>) -> io::Result<u64>,
}

impl Bounds {
    pub(super) const FORK: Self = Bounds { entries: 20_000, bytes: 1 << 30, free };
}

/// Entries missing from a copy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Number of files and directories that could not be read or were too deep.
    pub(super) entries: usize,
    /// First entry that is missing.
    pub(super) first: Option<PathBuf>,
}

/// Failure of a whole copy.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopyError {
    /// The source exceeds a limit. Another try would fail as well.
    #[error("{0}")]
    Refused(&'static str),
    /// The worker has closed its directory.
    #[error("their directory cannot be opened: {0}")]
    Closed(#[source] io::Error),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl From<Errno> for CopyError {
    fn from(errno: Errno) -> Self {
        CopyError::System(errno.into())
    }
}

/// Directory that has another name in the copy, because its name is made from the path of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Moved {
    /// Directory with one entry per workspace.
    pub(super) projects: PathBuf,
    pub(super) from: OsString,
    pub(super) to: OsString,
}

impl Moved {
    /// Returns the names of the directories for the workspaces `from` and `to`. A name is the path of the workspace,
    /// with `-` in place of every byte that is not an ASCII letter or digit.
    pub(super) fn between(projects: &Path, from: &Path, to: &Path) -> Self {
        let name = |path: &Path| {
            let byte = |byte: &u8| if byte.is_ascii_alphanumeric() { *byte } else { b'-' };
            OsString::from_vec(path.as_os_str().as_bytes().iter().map(byte).collect())
        };
        Moved { projects: projects.to_owned(), from: name(from), to: name(to) }
    }
}

/// Copies one directory into another, which exists and is empty. The copy belongs to `identity`, if given.
pub(super) fn copy(
    from: &Path,
    to: &Path,
    identity: Option<Identity>,
    moved: Option<&Moved>,
    bounds: Bounds,
) -> Result<LeftOut, CopyError> {
    let open = |path: &Path| rustix::fs::open(path, DIRECTORY, Mode::empty()).map_err(io::Error::from);
    let source = open(from).map_err(|error| {
        if is_shortage(&error) { CopyError::System(error) } else { CopyError::Closed(error) }
    })?;
    let target = open(to)?;
    let owner = fstat(&source)?.st_uid;
    // Half of the free space stays free, because the boards are on the same disk.
    let reserve = (bounds.free)(target.as_fd())? / 2;
    let left_out = LeftOut::default();
    let mut copy = Copy { owner, identity, moved, bounds, reserve, entries: 0, bytes: 0, left_out };
    copy.directory(source.as_fd(), target.as_fd(), Path::new(""), 0)?;
    copy.give(target.as_fd())?;
    Ok(copy.left_out)
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Returns the number of bytes that a user other than root can still write (`f_bavail`, statvfs(3)).
fn free(dir: BorrowedFd<'_>) -> io::Result<u64> {
    let filesystem = fstatvfs(dir)?;
    Ok(filesystem.f_bavail.saturating_mul(filesystem.f_frsize))
}

struct Copy<'a> {
    /// Owner of the source; other users' files are skipped.
    owner: u32,
    identity: Option<Identity>,
    moved: Option<&'a Moved>,
    bounds: Bounds,
    /// Number of bytes that have to stay free on the disk.
    reserve: u64,
    entries: usize,
    bytes: u64,
    left_out: LeftOut,
}

impl Copy<'_> {
    fn directory(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        at: &Path,
        depth: usize,
    ) -> Result<(), CopyError> {
        let Some(mut entries) = self.read(Dir::read_from(source), at)? else { return Ok(()) };
        while let Some(entry) = entries.read() {
            let Some(entry) = self.read(entry, at)? else { return Ok(()) };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.entries += 1;
            if self.entries > self.bounds.entries {
                return Err(CopyError::Refused("they have more than 20000 files"));
            }
            let path = at.join(name);
            let stat = statat(source, name, AtFlags::SYMLINK_NOFOLLOW);
            let Some(meta) = self.read(stat, &path)? else { continue };
            let Some(named) = self.name_of(at, name) else {
                self.leave_out(&path);
                continue;
            };
            match FileType::from_raw_mode(meta.st_mode) {
                FileType::Directory if depth == DEPTH => self.leave_out(&path),
                FileType::Directory => {
                    let opened = openat(source, name, DIRECTORY, Mode::empty());
                    let Some(inner) = self.read(opened, &path)? else { continue };
                    // The name of the new workspace's directory may exceed the limit of the file system.
                    let Some(()) = self.read(mkdirat(target, &named, Mode::RWXU), &path)? else { continue };
                    let made = openat(target, &named, DIRECTORY, Mode::empty())?;
                    self.directory(inner.as_fd(), made.as_fd(), &path, depth + 1)?;
                    self.give(made.as_fd())?;
                }
                FileType::RegularFile => self.file(source.as_fd(), target, name, &named, &path)?,
                // Links, sockets and pipes contain no session. They are skipped, and not counted as missing.
                FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => {}
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        name: &OsStr,
        named: &OsStr,
        path: &Path,
    ) -> Result<(), CopyError> {
        // The worker may replace the file at any time. `NONBLOCK` keeps the opening of a FIFO from blocking, and type
        // and owner are checked on the open file.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(source, name, flags, Mode::empty());
        let Some(file) = self.read(opened, path)?.map(File::from) else { return Ok(()) };
        let meta = fstat(&file)?;
        if FileType::from_raw_mode(meta.st_mode) != FileType::RegularFile || meta.st_uid != self.owner {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = File::from(openat(target, named, flags, Mode::RUSR | Mode::WUSR)?);
        // Data that is appended after this point is not copied.
        self.contents(&file, &made, u64::try_from(meta.st_size).unwrap_or_default())?;
        Ok(self.give(made.as_fd())?)
    }

    /// Copies the data of a file up to a length. Its holes are not written.
    fn contents(&mut self, mut source: &File, mut target: &File, length: u64) -> Result<(), CopyError> {
        let mut at = 0;
        while at < length {
            let Some((begin, end)) = data(source, at, length)? else { break };
            source.seek(SeekFrom::Start(begin))?;
            target.seek(SeekFrom::Start(begin))?;
            at = begin;
            while at < end {
                let piece = (end - at).min(PIECE);
                self.admit(piece, target.as_fd())?;
                let written = io::copy(&mut source.take(piece), &mut target)?;
                if written == 0 {
                    // The source was truncated meanwhile.
                    return Ok(());
                }
                at += written;
            }
        }
        Ok(target.set_len(length)?)
    }

    /// Counts bytes that are about to be written. Refuses them beyond the limit, or if they would use the reserve of
    /// free space.
    fn admit(&mut self, piece: u64, target: BorrowedFd<'_>) -> Result<(), CopyError> {
        self.bytes += piece;
        if self.bytes > self.bounds.bytes {
            return Err(CopyError::Refused("they have more than 1 GiB"));
        }
        if (self.bounds.free)(target)? < self.reserve.saturating_add(piece) {
            return Err(CopyError::Refused("they need more than half of what is free on the disk"));
        }
        Ok(())
    }

    /// Returns the value that was read from the source. If the read failed, counts the path as missing and returns
    /// none; a shortage of the host is an error.
    fn read<T>(&mut self, found: rustix::io::Result<T>, path: &Path) -> io::Result<Option<T>> {
        let found = unless_short(found.map_err(io::Error::from))?;
        if found.is_none() {
            self.leave_out(path);
        }
        Ok(found)
    }

    fn leave_out(&mut self, path: &Path) {
        self.left_out.entries += 1;
        self.left_out.first.get_or_insert_with(|| path.to_owned());
    }

    /// Returns the name of an entry in the copy. Returns none if the renamed directory has that name.
    fn name_of(&self, at: &Path, name: &OsStr) -> Option<OsString> {
        match self.moved.filter(|moved| moved.projects == at && moved.from != moved.to) {
            Some(moved) if moved.from == name => Some(moved.to.clone()),
            Some(moved) if moved.to == name => None,
            Some(_) | None => Some(name.to_owned()),
        }
    }

    fn give(&self, made: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(Identity { uid, gid }) = self.identity {
            fchown(made, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        Ok(())
    }
}

/// Returns the next range of data in a file from an offset on (`SEEK_DATA`, lseek(2)). Returns none if only a hole is
/// left.
fn data(file: &File, at: u64, length: u64) -> io::Result<Option<(u64, u64)>> {
    let begin = match seek(file, Seek::Data(at)) {
        Ok(begin) if begin < length => begin,
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        // The file system does not report holes.
        Err(Errno::INVAL) => return Ok(Some((at, length))),
        Err(error) => return Err(error.into()),
    };
    Ok(Some((begin, seek(file, Seek::Hole(begin))?.min(length))))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    /// Returns a directory with an empty target beside the source.
    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(&from).unwrap();
        fs::create_dir(&to).unwrap();
        (place, from, to)
    }

    fn copied(from: &Path, to: &Path) -> Result<LeftOut, CopyError> {
        copy(from, to, None, None, Bounds::FORK)
    }

    #[test]
    fn files_are_copied_with_the_name_of_their_new_workspace_and_nothing_leads_out() {
        let (place, from, to) = place();
        let sessions = from.join("projects/-srv-a-b");
        fs::create_dir_all(&sessions).unwrap();
        fs::write(sessions.join("s.jsonl"), "said").unwrap();
        fs::write(place.path().join("secret"), "x").unwrap();
        symlink(place.path().join("secret"), from.join("file")).unwrap();
        symlink(place.path(), from.join("dir")).unwrap();
        nix::unistd::mkfifo(&from.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let moved = Moved::between(Path::new("projects"), Path::new("/srv/a.b"), Path::new("/srv/c d"));
        let left_out = copy(&from, &to, None, Some(&moved), Bounds::FORK).unwrap();
        assert_eq!(left_out, LeftOut::default());
        assert_eq!(fs::read_to_string(to.join("projects/-srv-c-d/s.jsonl")).unwrap(), "said");
        let names: Vec<_> = fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["projects"]);
        assert!(sessions.join("s.jsonl").exists(), "the other one is as it was");
    }

    #[test]
    fn what_cannot_be_read_or_is_too_deep_is_left_out_and_the_rest_is_copied() {
        let (_place, from, to) = place();
        fs::write(from.join("s.jsonl"), "said").unwrap();
        let mut deep = from.join("deep");
        (0..40).for_each(|_| deep.push("d"));
        fs::create_dir_all(&deep).unwrap();
        for closed in ["closed", "shut"] {
            fs::create_dir(from.join(closed)).unwrap();
            fs::write(from.join(closed).join("x"), "x").unwrap();
        }
        fs::write(from.join("hidden"), "x").unwrap();
        let close = |name: &str, mode| {
            fs::set_permissions(from.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        let modes = [("closed", 0), ("shut", 0o400), ("hidden", 0)];
        for (name, mode) in &modes {
            close(name, *mode);
        }
        let left_out = copied(&from, &to).unwrap();
        for name in ["closed", "shut"] {
            close(name, 0o700);
        }
        assert_eq!(fs::read_to_string(to.join("s.jsonl")).unwrap(), "said");
        // Root can read all but the directory that is too deep.
        let is_root = nix::unistd::geteuid().is_root();
        assert_eq!(left_out.entries, if is_root { 1 } else { 4 }, "{left_out:?}");
        assert_eq!(fs::read_dir(to.join("shut")).unwrap().count(), usize::from(is_root));
        assert!(to.join("deep").join("d/".repeat(31)).is_dir());
        assert!(!to.join("deep").join("d/".repeat(32)).exists());
    }

    #[test]
    fn what_has_the_name_of_the_new_workspace_already_does_not_keep_the_session_out() {
        for first in ["-b", "-z"] {
            let (_place, from, to) = place();
            for name in ["-a", first] {
                fs::create_dir_all(from.join("projects").join(name)).unwrap();
                fs::write(from.join("projects").join(name).join("s.jsonl"), name).unwrap();
            }
            let moved =
                Moved::between(Path::new("projects"), Path::new("/a"), &Path::new("/").join(&first[1..]));
            let left_out = copy(&from, &to, None, Some(&moved), Bounds::FORK).unwrap();
            assert_eq!(left_out.first, Some(Path::new("projects").join(first)));
            assert_eq!(fs::read_to_string(to.join("projects").join(first).join("s.jsonl")).unwrap(), "-a");
        }
    }

    #[test]
    fn a_copy_is_bounded_by_what_is_written_and_by_what_is_free() {
        let (_place, from, to) = place();
        for name in ["a", "b"] {
            fs::write(from.join(name), vec![1; 3000]).unwrap();
        }
        let refused = |bounds: Bounds| {
            fs::remove_dir_all(&to).unwrap();
            fs::create_dir(&to).unwrap();
            copy(&from, &to, None, None, bounds).unwrap_err().to_string()
        };
        assert!(refused(Bounds { bytes: 5999, ..Bounds::FORK }).contains("1 GiB"));
        assert!(refused(Bounds { entries: 1, ..Bounds::FORK }).contains("20000 files"));
        let short = refused(Bounds { free: |_| Ok(4000), ..Bounds::FORK });
        assert!(short.contains("half of what is free"), "{short}");
        fs::remove_dir_all(&to).unwrap();
        fs::create_dir(&to).unwrap();
        copy(&from, &to, None, None, Bounds { bytes: 6000, entries: 2, ..Bounds::FORK }).unwrap();
    }

    #[test]
    fn a_hole_stays_a_hole_and_counts_for_nothing() {
        let (_place, from, to) = place();
        let sparse = File::create(from.join("sparse")).unwrap();
        sparse.set_len(8 << 30).unwrap();
        sparse.write_all_at(b"begin", 0).unwrap();
        sparse.write_all_at(b"middle", 5 << 30).unwrap();
        File::create(from.join("hole")).unwrap().set_len(2 << 30).unwrap();
        assert_eq!(copied(&from, &to).unwrap(), LeftOut::default());
        let (made, hole) = (File::open(to.join("sparse")).unwrap(), fs::metadata(to.join("hole")).unwrap());
        let mut middle = [0; 8];
        made.read_exact_at(&mut middle, (5 << 30) - 1).unwrap();
        assert_eq!(&middle, b"\0middle\0");
        made.read_exact_at(&mut middle, 0).unwrap();
        assert_eq!(&middle, b"begin\0\0\0");
        let meta = made.metadata().unwrap();
        assert_eq!((meta.len(), hole.len()), (8 << 30, 2 << 30));
        assert!((meta.blocks() + hole.blocks()) * 512 < 16 << 20, "{} blocks", meta.blocks());
    }
}
