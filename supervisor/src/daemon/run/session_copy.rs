//! The copy of a task's sessions for a fork of it: regular files and directories alone, as many as is bounded, in a directory that nobody
//! else enters before it is whole.
//!
//! A worker has written what is copied. It is opened beneath the directory, step by step, and nothing that leads elsewhere is followed: no
//! link, no file of another user, nothing that is no file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use policies::Identity;
use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid, fchown, fstat, mkdirat, openat, statat};

/// The most files and directories of a copy.
const ENTRIES: usize = 20_000;
/// The most bytes of a copy.
const BYTES: u64 = 1 << 30;
/// How deep it may be.
const DEPTH: usize = 32;

/// What of it has another name in the copy: sessions that belong to a workspace.
#[derive(Clone, Debug)]
pub(super) struct Moved {
    /// The directory that has one for each workspace.
    pub(super) projects: PathBuf,
    pub(super) from: OsString,
    pub(super) to: OsString,
}

impl Moved {
    /// The name of a workspace's directory: its path, with `-` for whatever is neither a letter nor a digit of ASCII.
    pub(super) fn of(projects: &Path, from: &Path, to: &Path) -> Self {
        let name = |path: &Path| {
            let byte = |byte: &u8| if byte.is_ascii_alphanumeric() { *byte } else { b'-' };
            OsString::from_vec(path.as_os_str().as_bytes().iter().map(byte).collect())
        };
        Moved { projects: projects.to_owned(), from: name(from), to: name(to) }
    }
}

/// Copies one directory into another, which is there and empty.
pub(super) fn copy(
    from: &Path,
    to: &Path,
    identity: Option<Identity>,
    moved: Option<&Moved>,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |path: &Path| rustix::fs::open(path, flags, Mode::empty());
    let (source, target) = (open(from)?, open(to)?);
    let owner = fstat(&source)?.st_uid;
    let mut copy = Copy { owner, identity, moved, entries: 0, bytes: 0 };
    copy.directory(source.as_fd(), target.as_fd(), Path::new(""), 0)?;
    copy.give(target.as_fd())
}

struct Copy<'a> {
    /// Whose files are copied.
    owner: u32,
    /// Whose the copies are.
    identity: Option<Identity>,
    moved: Option<&'a Moved>,
    entries: usize,
    bytes: u64,
}

impl Copy<'_> {
    fn directory(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        at: &Path,
        depth: usize,
    ) -> io::Result<()> {
        if depth > DEPTH {
            return Err(too_much("it is deeper than 32 directories"));
        }
        let mut entries = Dir::read_from(source)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.entries += 1;
            if self.entries > ENTRIES {
                return Err(too_much("it has more than 20000 files"));
            }
            let meta = statat(source, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let named = self.name_of(at, name);
            match FileType::from_raw_mode(meta.st_mode) {
                FileType::Directory => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let inner = openat(source, name, flags, Mode::empty())?;
                    mkdirat(target, &named, Mode::RWXU)?;
                    let made = openat(target, &named, flags, Mode::empty())?;
                    self.directory(inner.as_fd(), made.as_fd(), &at.join(name), depth + 1)?;
                    self.give(made.as_fd())?;
                }
                FileType::RegularFile => self.file(source.as_fd(), target, (name, &named))?,
                // Links, sockets, pipes: no session is in one.
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
        (name, named): (&OsStr, &OsStr),
    ) -> io::Result<()> {
        // What it is may have changed since: opening a pipe waits for nobody.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(source, name, flags, Mode::empty())?);
        let meta = fstat(&file)?;
        if FileType::from_raw_mode(meta.st_mode) != FileType::RegularFile || meta.st_uid != self.owner {
            return Ok(());
        }
        let left = BYTES - self.bytes;
        if u64::try_from(meta.st_size).unwrap_or(u64::MAX) > left {
            return Err(too_much("it has more than 1 GiB"));
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut made = File::from(openat(target, named, flags, Mode::RUSR | Mode::WUSR)?);
        // It may grow meanwhile.
        self.bytes += io::copy(&mut file.take(left + 1), &mut made)?;
        if self.bytes > BYTES {
            return Err(too_much("it has more than 1 GiB"));
        }
        self.give(made.as_fd())
    }

    fn name_of(&self, at: &Path, name: &OsStr) -> OsString {
        let moved = self.moved.filter(|moved| moved.projects == at && moved.from == name);
        moved.map_or(name, |moved| moved.to.as_os_str()).to_owned()
    }

    fn give(&self, made: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(Identity { uid, gid }) = self.identity {
            fchown(made, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        Ok(())
    }
}

fn too_much(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_copied_with_the_name_of_their_new_workspace_and_nothing_leads_out() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        let sessions = from.join("projects/-srv-a-b");
        fs::create_dir_all(&sessions).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(sessions.join("s.jsonl"), "said").unwrap();
        fs::write(place.path().join("secret"), "x").unwrap();
        symlink(place.path().join("secret"), from.join("file")).unwrap();
        symlink(place.path(), from.join("dir")).unwrap();
        nix::unistd::mkfifo(&from.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let moved = Moved::of(Path::new("projects"), Path::new("/srv/a.b"), Path::new("/srv/c d"));
        copy(&from, &to, None, Some(&moved)).unwrap();
        assert_eq!(fs::read_to_string(to.join("projects/-srv-c-d/s.jsonl")).unwrap(), "said");
        let names: Vec<_> = fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["projects"]);
        assert!(sessions.join("s.jsonl").exists(), "the other one is as it was");
    }

    #[test]
    fn a_copy_is_bounded() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(&from).unwrap();
        fs::create_dir(&to).unwrap();
        // Sparse: what is too large is not read at all.
        File::create(from.join("big")).unwrap().set_len(BYTES + 1).unwrap();
        let error = copy(&from, &to, None, None).unwrap_err();
        assert!(error.to_string().contains("1 GiB"), "{error}");
        fs::remove_file(from.join("big")).unwrap();
        let mut deep = from.clone();
        (0..40).for_each(|_| deep.push("d"));
        fs::create_dir_all(deep).unwrap();
        let error = copy(&from, &to, None, None).unwrap_err();
        assert!(error.to_string().contains("deeper"), "{error}");
    }
}
