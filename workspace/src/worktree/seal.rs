//! The end of a run in a worktree: its work is taken over, and traps that it planted are removed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use git2::{Oid, Repository};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Worktree, WorktreeError};
use crate::git::Source;
use crate::irregular;
use crate::links::{self, Links};
use crate::open::{self, OpenError};

/// The mode of an entry that stands for a submodule.
const SUBMODULE: u32 = 0o160_000;
/// The name that a repository gets in which a worker could have written anything.
const SET_ASIDE: &str = ".git.untrusted";

/// What was done at the end of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Repositories of submodules in the worktree that were renamed, because git would run what their settings name; an index
    /// and a log of HEAD that were removed, because they name such ones unseen, or objects that are not there.
    pub set_aside: Vec<PathBuf>,
}

impl Worktree {
    /// Takes over what a run committed, and makes the worktree safe to look at.
    ///
    /// Only after the run's end, for the holder of the worktree's lease. The files that tie the worktree to the repository say
    /// again what they should, and the repositories of submodules, in which `git status` of the worktree would run what the
    /// worker configured, are set aside. One that was interrupted is done again by the next, or by the next preparation.
    pub fn seal(&self) -> Result<Sealed, WorktreeError> {
        let source = Source::open(&self.repository)?;
        let links = self.links(&source, &self.directory());
        match open::directory(&links.tree) {
            Ok(_) => {}
            Err(OpenError::Missing { .. }) => return Ok(Sealed::default()),
            Err(error) => return Err(WorktreeError::OpenTree(error)),
        }
        self.disarm(&links)?;
        self.tie(&links)?;
        let published = self.private(&links).publish(&source);
        // Whatever became of the commits.
        let mut set_aside = set_aside_submodules(&links)?;
        set_aside.extend(self.forget_missing(&source, &links)?);
        published?;
        Ok(Sealed { set_aside })
    }

    /// Removes what names objects that are not there: `git gc` of the repository stops at them.
    fn forget_missing(&self, source: &Source, links: &Links) -> Result<Vec<PathBuf>, WorktreeError> {
        let git = source.git();
        let failed = |source| WorktreeError::Link { path: links.tree.clone(), source };
        let head = links::read(&links.metadata.join("HEAD")).and_then(|head| Oid::from_str(&head).ok());
        if head.is_some_and(|commit| git.find_commit(commit).is_err()) {
            links.attach_head(&self.branch()).map_err(failed)?;
        }
        let has = |id: Oid| id.is_zero() || git.odb().is_ok_and(|odb| odb.exists(id));
        let mut gone = Vec::new();
        let index = Repository::open(&links.tree).and_then(|tree| tree.index());
        if index.is_ok_and(|index| index.iter().any(|entry| entry.mode != SUBMODULE && !has(entry.id))) {
            gone.push(links.metadata.join("index"));
        }
        let log = links.metadata.join("logs/HEAD");
        let names = |line: &str| line.split(' ').take(2).all(|id| Oid::from_str(id).is_ok_and(has));
        if log.symlink_metadata().is_ok()
            && !links::read_whole(&log).is_some_and(|text| text.lines().all(names))
        {
            gone.push(log);
        }
        for path in &gone {
            fs::remove_file(path).map_err(|source| WorktreeError::Private { path: path.clone(), source })?;
        }
        Ok(gone)
    }

    /// Removes what would make git wait or run something before the worktree is opened.
    pub(crate) fn disarm(&self, links: &Links) -> Result<(), WorktreeError> {
        // A repository in its place; it may be worth something to somebody.
        if links.tree.join(".git").symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            set_aside(links, Path::new("."))?;
        }
        // HEAD or the index as a FIFO: git would wait for it. As a link: git would write where it leads.
        irregular::remove_planted(&links.metadata)
            .map_err(|(path, source)| WorktreeError::Private { path, source })?;
        match self.private(links).settings() {
            Some(settings) => links
                .restore_settings(&settings)
                .map_err(|source| WorktreeError::Link { path: links.tree.clone(), source }),
            None => Ok(()),
        }
    }

    /// Puts right the files that say which repository the worktree is of.
    fn tie(&self, links: &Links) -> Result<(), WorktreeError> {
        let failed = |source| WorktreeError::Link { path: links.tree.clone(), source };
        if links.are_good(&self.branch()) { Ok(()) } else { links.write(&self.branch()).map_err(failed) }
    }
}

/// Renames the `.git` of each submodule that the index names.
fn set_aside_submodules(links: &Links) -> Result<Vec<PathBuf>, WorktreeError> {
    let read = || -> Result<Vec<PathBuf>, git2::Error> {
        let index = Repository::open(&links.tree)?.index()?;
        let submodules = index.iter().filter(|entry| entry.mode == SUBMODULE);
        Ok(submodules.map(|entry| PathBuf::from(OsStr::from_bytes(&entry.path))).collect())
    };
    let Ok(found) = read() else {
        // Git may understand what this library does not, such as an index in two files.
        let index = links.metadata.join("index");
        fs::remove_file(&index).map_err(|source| WorktreeError::Private { path: index.clone(), source })?;
        return Ok(vec![index]);
    };
    let mut done = Vec::new();
    for path in found {
        done.extend(set_aside(links, &path)?);
    }
    Ok(done)
}

/// Renames the `.git` in a directory of the worktree, where there is one. Returns what it was called.
fn set_aside(links: &Links, inside: &Path) -> Result<Option<PathBuf>, WorktreeError> {
    let whole = links.tree.join(inside).join(".git");
    let failed = |errno: Errno| WorktreeError::SetAside { path: whole.clone(), source: errno.into() };
    let top = open::directory(&links.tree).map_err(WorktreeError::OpenTree)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let Ok(directory) = openat2(&top.fd, inside, flags, Mode::empty(), resolve) else { return Ok(None) };
    match statat(&directory, ".git", AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(errno)),
        Ok(_) => {}
    }
    for n in 0.. {
        let name = if n == 0 { SET_ASIDE.to_owned() } else { format!("{SET_ASIDE}-{n}") };
        match renameat_with(&directory, ".git", &directory, &name, RenameFlags::NOREPLACE) {
            Ok(()) => break,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(Some(whole))
}
