//! Finds entries that would make git wait, or lead it elsewhere: a FIFO, a socket, a device or a symbolic link in place
//! of a file.

use std::ffi::{CStr, OsStr};
use std::fmt;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, statat};
use serde::{Deserialize, Serialize};

use crate::open;

/// Limit on the entries of a search. A search only explains a failure, so it may give up.
const ENTRIES: usize = 200_000;
/// Limit on the depth of a search; each level has an open descriptor.
const DEPTH: usize = 64;
/// Name of the directory of a repository.
const DOT_GIT: &[u8] = b".git";

/// Entry that is neither a file nor a directory. In a directory that only git and a worker write, a symbolic link is
/// irregular too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Irregular {
    pub path: PathBuf,
    /// Type of the entry in the place of a regular file.
    pub kind: IrregularKind,
}

/// Types of entries whose open can wait or lead elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IrregularKind {
    /// A named pipe.
    Fifo,
    Socket,
    /// A character or block device.
    Device,
    /// A symbolic link, which git writes through.
    Link,
}

impl fmt::Display for Irregular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            IrregularKind::Fifo => "FIFO",
            IrregularKind::Socket => "socket",
            IrregularKind::Device => "device",
            IrregularKind::Link => "symbolic link",
        };
        write!(f, "{} is a {kind}, and git needs a file there", self.path.display())
    }
}

/// Searches the tree at `top` for the first irregular entry that git opens: any entry in a `.git`, and elsewhere the
/// files whose names begin with `.git`. Opens only directories, and follows no symbolic link.
pub fn find(top: &Path) -> Option<Irregular> {
    let opened = open::directory(top).ok()?;
    let mut search = Search { left: ENTRIES, passes_sockets: false };
    search.directory(open::readable(&opened.fd).ok()?, top, Area::containing(top), DEPTH)
}

/// Searches as [`find`] does, but skips sockets: the open of a socket fails at once, and git makes sockets itself.
pub(crate) fn find_stopping(top: &Path) -> Option<Irregular> {
    let opened = open::directory(top).ok()?;
    let mut search = Search { left: ENTRIES, passes_sockets: true };
    search.directory(open::readable(&opened.fd).ok()?, top, Area::containing(top), DEPTH)
}

/// Searches a directory that only git and a worker write for the first entry that is neither a file nor a directory. Git
/// makes no symbolic links there. A link of the worker would lead git, which runs outside of the worker's sandbox, to
/// files that the worker cannot reach.
pub(crate) fn planted(top: &Path) -> Option<Irregular> {
    match every_planted(top, &mut ControlFlow::Break) {
        ControlFlow::Break(found) => Some(found),
        ControlFlow::Continue(()) => None,
    }
}

/// Removes all entries that [`planted`] would find. The error has the first entry that could not be removed.
pub(crate) fn remove_planted(top: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    let removed = every_planted(top, &mut |found| match fs_err::remove_file(&found.path) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break((found.path, error)),
    });
    match removed {
        ControlFlow::Break(failed) => Err(failed),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn every_planted<B>(top: &Path, visit: &mut dyn FnMut(Irregular) -> ControlFlow<B>) -> ControlFlow<B> {
    match open::directory(top) {
        Ok(opened) => planted_in(&opened.fd, top, DEPTH, visit),
        Err(_) => ControlFlow::Continue(()),
    }
}

/// Visits each irregular entry. The number of entries is not limited, because a worker could hide an entry behind many
/// others.
fn planted_in<B>(
    held: &OwnedFd,
    path: &Path,
    depth: usize,
    visit: &mut dyn FnMut(Irregular) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let Ok(readable) = open::readable(held) else { return ControlFlow::Continue(()) };
    let Ok(entries) = Dir::new(readable) else { return ControlFlow::Continue(()) };
    let mut inner = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let below = path.join(OsStr::from_bytes(name.to_bytes()));
        let kind = match entry.file_type() {
            FileType::Unknown => statat(held, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            kind => kind,
        };
        match kind {
            FileType::Directory => inner.push(below),
            FileType::Symlink => visit(Irregular { path: below, kind: IrregularKind::Link })?,
            kind => {
                if let Some(kind) = irregular(kind) {
                    visit(Irregular { path: below, kind })?;
                }
            }
        }
    }
    // Git opens nothing deeper in such a directory, whose own subdirectories are few levels deep.
    let Some(depth) = depth.checked_sub(1) else { return ControlFlow::Continue(()) };
    for below in inner {
        let name = below.file_name().map_or(Path::new("."), Path::new);
        if let Ok(found) = open::child(held, name, &below) {
            planted_in(&found.fd, &below, depth, visit)?;
        }
    }
    ControlFlow::Continue(())
}

/// Part of a tree, by the files that git opens in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Area {
    /// The files of a repository itself. Git may open each of them.
    Repository,
    /// A working tree. Git opens the files that it tracks, and files such as `.gitignore`.
    Work,
}

impl Area {
    fn containing(path: &Path) -> Self {
        let inside = path.components().any(|part| part.as_os_str().as_bytes() == DOT_GIT);
        if inside { Self::Repository } else { Self::Work }
    }
}

struct Search {
    left: usize,
    passes_sockets: bool,
}

impl Search {
    fn directory(&mut self, readable: OwnedFd, path: &Path, area: Area, depth: usize) -> Option<Irregular> {
        let mut inner = Vec::new();
        let mut entries = Dir::new(readable).ok()?;
        while let Some(entry) = entries.read() {
            let Ok(entry) = entry else { continue };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.left = self.left.checked_sub(1)?;
            let below = path.join(OsStr::from_bytes(name.to_bytes()));
            match kind_of(entries.fd().ok()?, name, entry.file_type()) {
                Some(FileType::Directory) => inner.push((name.to_owned(), below)),
                Some(kind) if area == Area::Repository || name.to_bytes().starts_with(DOT_GIT) => {
                    let found = irregular(kind);
                    if let Some(kind) =
                        found.filter(|kind| !self.passes_sockets || *kind != IrregularKind::Socket)
                    {
                        return Some(Irregular { path: below, kind });
                    }
                }
                _ => {}
            }
        }
        let depth = depth.checked_sub(1)?;
        // The files of the repository come first, because git opens most of them.
        inner.sort_by_key(|(name, _)| name.to_bytes() != DOT_GIT);
        inner.into_iter().find_map(|(name, path)| {
            let name_of = Path::new(OsStr::from_bytes(name.to_bytes()));
            let child = open::readable_child(entries.fd().ok()?, name_of).ok()?;
            let area = if name.to_bytes() == DOT_GIT { Area::Repository } else { area };
            self.directory(child, &path, area, depth)
        })
    }
}

/// Returns the type of an entry; for a symbolic link, the type of its target, which is not opened. None if it cannot be
/// determined, and for a link to a directory.
fn kind_of(directory: BorrowedFd<'_>, name: &CStr, listed: FileType) -> Option<FileType> {
    match listed {
        FileType::Symlink | FileType::Unknown => {
            let link = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let link_type = FileType::from_raw_mode(link.st_mode);
            if link_type != FileType::Symlink {
                return Some(link_type);
            }
            let target = FileType::from_raw_mode(statat(directory, name, AtFlags::empty()).ok()?.st_mode);
            (target != FileType::Directory).then_some(target)
        }
        kind => Some(kind),
    }
}

fn irregular(kind: FileType) -> Option<IrregularKind> {
    match kind {
        FileType::Fifo => Some(IrregularKind::Fifo),
        FileType::Socket => Some(IrregularKind::Socket),
        FileType::CharacterDevice | FileType::BlockDevice => Some(IrregularKind::Device),
        FileType::RegularFile | FileType::Directory | FileType::Symlink | FileType::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode, mknodat};

    use super::*;

    fn fifo(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    #[test]
    fn a_fifo_among_what_git_opens_is_named_and_one_of_the_projects_own_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for inner in [".git/objects/ab", ".git/info", "src", ".worktrees/t_1"] {
            fs_err::create_dir_all(top.join(inner)).unwrap();
        }
        fifo(&top.join("src/pipe"));
        assert_eq!(find(&top), None);
        for place in
            [".git/objects/ab/cd", ".git/HEAD", ".git/info/exclude", "src/.gitignore", ".worktrees/t_1/.git"]
        {
            let path = top.join(place);
            fifo(&path);
            let found = find(&top).unwrap();
            assert_eq!((found.path.as_path(), found.kind), (path.as_path(), IrregularKind::Fifo));
            assert!(found.to_string().contains("is a FIFO"), "{found}");
            fs_err::remove_file(path).unwrap();
        }
    }

    #[test]
    fn a_link_to_a_fifo_is_named_and_a_loop_of_links_ends() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs_err::create_dir(top.join(".git")).unwrap();
        symlink("..", top.join(".git/loop")).unwrap();
        symlink("self", top.join(".git/self")).unwrap();
        assert_eq!(find(&top), None);
        fifo(&top.join("pipe"));
        symlink("../pipe", top.join(".git/HEAD")).unwrap();
        assert_eq!(find(&top).unwrap().path, top.join(".git/HEAD"));
    }

    #[test]
    fn a_link_among_what_only_git_and_a_worker_write_is_found_behind_any_number_of_files_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs_err::create_dir_all(top.join("objects/pack")).unwrap();
        for n in 0..300 {
            fs_err::write(top.join(format!("objects/{n}")), "").unwrap();
        }
        assert_eq!(planted(&top), None);
        symlink("/etc", top.join("objects/pack/away")).unwrap();
        fifo(&top.join("index"));
        assert!(planted(&top).is_some());
        remove_planted(&top).unwrap();
        assert_eq!(planted(&top), None);
        assert!(Path::new("/etc").is_dir() && top.join("objects/299").exists());
    }
}
