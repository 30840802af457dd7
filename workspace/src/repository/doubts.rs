//! Keeps a worker from hiding changes from a diff: commits are compared by content, and git's rules that would leave
//! out files are ignored.
//!
//! See decision 0175.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use git2::{
    Config, Diff as Found, DiffDelta, DiffOptions, Index, IndexEntry, IndexTime, ObjectType, Oid, Repository,
    Tree,
};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::{RepositoryError, read};
use crate::{irregular, open};

/// Largest file that is recognized, in bytes. Git reads a larger file in parts.
const RECOGNIZED: usize = 64 << 20;
/// Rule that hides the linked working trees of tasks.
const WORKTREES: &str = "/.worktrees/";

/// Opens a working tree. Refuses a repository that names another working tree, because a worker may have written any
/// path into `core.worktree`.
///
/// # Errors
/// Fails if this user cannot open or read the repository, if its files are elsewhere, or if git would wait for a FIFO or a
/// device.
pub(crate) fn open_tree(path: &Path) -> Result<Repository, RepositoryError> {
    if let Some(found) = irregular::find_stopping(path) {
        return Err(RepositoryError::Irregular { path: path.to_owned(), found });
    }
    let git = super::open(path)?;
    let canonical = path.canonicalize().ok();
    let is_own = canonical.is_some() && git.workdir().and_then(|dir| dir.canonicalize().ok()) == canonical;
    if is_own {
        return Ok(git);
    }
    Err(read(path, "the working tree")(git2::Error::from_str("`core.worktree` names another place")))
}

/// Returns the paths of a committed diff whose content is different in the working tree.
pub(super) fn contradicted(
    git: &Repository,
    committed: &Found<'_>,
    tip: &Tree<'_>,
) -> Result<BTreeSet<Vec<u8>>, git2::Error> {
    let paths: BTreeSet<Vec<u8>> = committed.deltas().map(|delta| path(&delta)).collect();
    if paths.is_empty() {
        return Ok(paths);
    }
    let mut options = DiffOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true);
    options.ignore_submodules(true).include_typechange(true).disable_pathspec_match(true);
    for path in &paths {
        options.pathspec(path.as_slice());
    }
    let since = to_files(git, Some(tip), &mut options, &|path| paths.contains(path))?;
    let otherwise: BTreeSet<Vec<u8>> = since.deltas().map(|delta| path(&delta)).collect();
    Ok(paths.into_iter().filter(|path| otherwise.contains(path)).collect())
}

/// Compares a commit's tree with the files of the working tree. The worker's index is not used, because it may hide
/// changes.
///
/// `wanted` files whose bytes equal their blob are recognized first: git would look for the attributes of
/// each file, which costs ten times as many system calls as reading it.
pub(crate) fn to_files<'a>(
    git: &'a Repository,
    tree: Option<&Tree<'_>>,
    options: &mut DiffOptions,
    wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<Found<'a>, git2::Error> {
    let mut index = Index::new()?;
    if let Some(tree) = tree {
        index.read_tree(tree)?;
    }
    if let Some(files) = git.workdir().and_then(|path| open::directory(path).ok()) {
        for at in 0..index.len() {
            let Some(entry) = index.get(at).filter(|entry| entry.mode & 0o170_000 == 0o100_000) else {
                continue;
            };
            if let Some(known) = Some(&entry)
                .filter(|entry| wanted(&entry.path))
                .and_then(|entry| recognized(&files.fd, entry))
            {
                index.add(&known)?;
            }
        }
    }
    git.diff_index_to_workdir(Some(&index), Some(options))
}

/// Returns the entry with the stat data of its file, if the file has the bytes of the entry's blob. Git then takes the
/// file for unchanged.
fn recognized(files: &OwnedFd, entry: &IndexEntry) -> Option<IndexEntry> {
    // The open of a planted FIFO must not wait, and no link may lead out of the working tree (openat2(2)).
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(files, entry.path.as_slice(), flags, Mode::empty(), resolve).ok()?;
    let stat = fstat(&file).ok()?;
    let size = usize::try_from(stat.st_size).ok().filter(|size| *size <= RECOGNIZED)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let content = content_of(&file, size)?;
    if Oid::hash_object(ObjectType::Blob, &content).ok()? != entry.id {
        return None;
    }
    let time = |seconds: i64, nanoseconds: u64| {
        Some(IndexTime::new(i32::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?))
    };
    Some(IndexEntry {
        ctime: time(stat.st_ctime, stat.st_ctime_nsec)?,
        mtime: time(stat.st_mtime, stat.st_mtime_nsec)?,
        dev: low(stat.st_dev),
        ino: low(stat.st_ino),
        uid: stat.st_uid,
        gid: stat.st_gid,
        file_size: u32::try_from(size).ok()?,
        mode: entry.mode,
        id: entry.id,
        flags: entry.flags,
        flags_extended: entry.flags_extended,
        path: entry.path.clone(),
    })
}

/// Returns the bytes of a file if there are exactly `size` of them.
fn content_of(file: &OwnedFd, size: usize) -> Option<Vec<u8>> {
    // A read of a regular file is short only at its end (read(2)), so most files need one call.
    let mut content = vec![0; size + 1];
    let mut read = 0;
    while read <= size {
        match rustix::io::read(file, content.get_mut(read..)?).ok()? {
            0 => break,
            more => read += more,
        }
        if read == size {
            break;
        }
    }
    content.truncate(read);
    (read == size).then_some(content)
}

/// Returns the low 32 bits, which an index stores.
fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}

/// Returns the path of a differing file, in the form that git stores.
pub(super) fn path(delta: &DiffDelta<'_>) -> Vec<u8> {
    delta.new_file().path_bytes().or(delta.old_file().path_bytes()).unwrap_or_default().to_vec()
}

/// Returns a repository without the settings in `.git` by which a worker may hide changes: rules of `info/exclude` and
/// `info/attributes`, settings such as `core.fileMode`, and marks of the index. A diff then reads only the files of the
/// working tree and the objects of the repository. `.gitignore` and `.gitattributes` still count, because they are
/// files of the diff themselves.
///
/// A linked working tree gets its rules and settings from its repository, which its worker cannot write.
pub(super) fn unhidden(git: Repository) -> Result<Repository, git2::Error> {
    let Some(files) = git.workdir().filter(|_| !git.is_worktree()) else { return Ok(git) };
    let plain = Repository::from_odb(git.odb()?)?;
    plain.set_workdir(files, false)?;
    plain.set_config(&Config::new()?)?;
    plain.set_index(&mut Index::new()?)?;
    plain.add_ignore_rule(WORKTREES)?;
    Ok(plain)
}

/// Returns warnings about settings of the repository that a diff ignores, and about changes that its settings hide.
pub(super) fn warnings(git: &Repository) -> Vec<String> {
    let mut warnings = Vec::new();
    if !git.is_worktree() {
        for (name, what) in [("info/exclude", "files"), ("info/attributes", "lines")] {
            if has_rules(&git.path().join(name)) {
                warnings.push(format!("the rules of .git/{name} are not followed, as its worker may have written them: {what} that they hide are shown"));
            }
        }
        return warnings;
    }
    if git.config().and_then(|config| config.get_bool("core.fileMode")).is_ok_and(|is_seen| !is_seen) {
        warnings.push("`core.fileMode` is off: that a file may be executed is not seen".to_owned());
    }
    warnings
}

/// Returns true if a file has a line that is no comment, or if it cannot be read.
fn has_rules(file: &Path) -> bool {
    match std::fs::metadata(file) {
        Err(_) => false,
        Ok(known) if !known.is_file() || known.len() > 1 << 20 => true,
        Ok(_) => std::fs::read(file).map_or(true, |bytes| {
            bytes.split(|byte| *byte == b'\n').any(|line| {
                let line = line.trim_ascii();
                // The supervisor itself adds the line with the directory of linked working trees.
                !line.is_empty() && !line.starts_with(b"#") && line != WORKTREES.as_bytes()
            })
        }),
    }
}
