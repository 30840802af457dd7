//! The metadata of a worktree (`HEAD`, index, logs, states of a rebase). A run works on a copy, which replaces the
//! repository's own metadata after the run.
//!
//! Git reads `.git/worktrees/<id>` of every worktree when it fetches, packs or checks a repository, and fails at the
//! name of a missing object. The objects of a run are private until its end, so all files that name them are private as
//! well.
//!
//! See decision 0027.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use git2::{ObjectType, Oid};
use rustix::fs::{CWD, Mode, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::objects::Objects;
use super::private::Private;
use super::{WorktreeError, aside, beside, claims, index};
use crate::git::Source;
use crate::irregular;
use crate::links::{self, Links};
use crate::open;

/// Directory of the repositories of submodules. They are not copied.
const MODULES: &str = "modules";
/// Files closed to the worker. After the run the repository's own versions are put back.
const FIXED: [&str; 2] = [SETTINGS, "locked"];
/// File of the settings of one worktree.
const SETTINGS: &str = "config.worktree";
/// Limit on the depth of directories that are copied or searched. Only long names of references make git's own
/// directories deeper than a few levels.
const DEPTH: usize = 64;
/// Files with a commit of a rebase on the first line, which `git prune` reads (`add_rebase_files` in git's reachable.c).
const REBASE: [&str; 4] =
    ["rebase-apply/autostash", "rebase-apply/orig-head", "rebase-merge/autostash", "rebase-merge/orig-head"];

impl Private<'_> {
    /// Returns the directory that the worker sees as `.git/worktrees/<id>`.
    pub(crate) fn metadata(&self) -> PathBuf {
        self.dir().join("worktree")
    }

    /// Returns the record of the copy as it was made: its inode, and a digest of its content. No worker sees this file.
    fn copied(&self) -> PathBuf {
        self.dir().join("worktree.given")
    }

    /// Returns the `HEAD` of the repository's own metadata when the copy was made. No worker sees this file.
    fn head_as_given(&self) -> PathBuf {
        self.dir().join("HEAD.given")
    }

    /// Returns true if the owner of the repository has removed its metadata of the worktree, such as by
    /// `git worktree remove`.
    pub(super) fn is_removed(&self) -> bool {
        [&self.links.metadata, &self.replaced()].into_iter().all(|path| path.symlink_metadata().is_err())
    }

    /// Returns the place of the repository's own metadata after it was replaced, if the replacement took two steps.
    fn replaced(&self) -> PathBuf {
        self.dir().join("worktree.replaced")
    }

    /// Copies the metadata for the run.
    pub(crate) fn provide_metadata(&self) -> Result<(), WorktreeError> {
        let metadata_dir = self.metadata();
        let failed = |source| WorktreeError::Private { path: metadata_dir.clone(), source };
        copy(&self.links.metadata, &metadata_dir, DEPTH).map_err(failed)?;
        if self.has_modules() {
            // The view shows the repository's own directory in its place.
            fs::create_dir(metadata_dir.join(MODULES)).map_err(failed)?;
        }
        if let Some(head) = links::read_bytes(&metadata_dir.join("HEAD")) {
            fs::write(self.head_as_given(), head).map_err(failed)?;
        }
        let inode = inode(&metadata_dir).unwrap_or_default();
        fs::write(self.copied(), format!("{inode} {}\n", digest(&metadata_dir).map_err(failed)?))
            .map_err(failed)
    }

    /// Returns true if submodules of the worktree have repositories. A run gets no copy of them.
    pub(crate) fn has_modules(&self) -> bool {
        self.links.metadata.join(MODULES).symlink_metadata().is_ok_and(|found| found.is_dir())
    }

    /// Returns the metadata that the worker wrote: its copy, or the repository's own if the worker had no view.
    pub(crate) fn written_metadata(&self) -> Links {
        let metadata = if self.is_copy_written() { self.metadata() } else { self.links.metadata.clone() };
        Links { tree: self.links.tree.clone(), metadata, common: self.links.common.clone() }
    }

    fn is_copy_written(&self) -> bool {
        let Some(record) = links::read(&self.copied()) else { return false };
        let Some((given, content)) = record.split_once(' ') else { return false };
        // The copy is in its place already: an earlier try was interrupted after that step.
        let is_taken = inode(&self.links.metadata).is_some_and(|found| found.to_string() == given);
        let metadata_dir = self.metadata();
        !is_taken
            && metadata_dir.is_dir()
            && !digest(&metadata_dir).is_ok_and(|now| now.to_string() == content)
    }

    /// Removes entries from the copy that git would wait for, or write through.
    pub(crate) fn disarm_metadata(&self) -> Result<(), WorktreeError> {
        open_all(&self.metadata(), DEPTH);
        irregular::remove_planted(&self.metadata())
            .map_err(|(path, source)| WorktreeError::Private { path, source })
    }

    /// Puts the metadata that the worker wrote into the repository, without the files that name missing objects.
    /// Returns the removed files. The objects of the run and its branch are in the repository by then.
    pub(crate) fn take_metadata(
        &self,
        source: &Source,
        objects: &mut Objects<'_>,
    ) -> Result<Vec<PathBuf>, WorktreeError> {
        let written = self.written_metadata();
        let mut gone = Vec::new();
        if written.metadata != self.links.metadata {
            self.finish_copy(&written, &mut gone)?;
            claims::give_up(source, &written, self.links, &self.branch)?;
        }
        gone.extend(forget_missing(source, &written, &self.branch, Some(objects))?);
        if written.metadata != self.links.metadata {
            // Other members of the group read the metadata of all worktrees when they pack or check the repository.
            let failed = |source| WorktreeError::Private { path: written.metadata.clone(), source };
            source.share(&written.metadata).map_err(failed)?;
            // Another process has committed on a detached HEAD during the run, or the worker has left a HEAD that had commits
            // before the run.
            let is_as_given =
                links::read(&self.links.metadata.join("HEAD")) == links::read(&self.head_as_given());
            if !is_as_given || !self.has_head_of_owner(source, &written) {
                beside::keep_head(source, self.id, &self.links.metadata)?;
            }
            self.exchange(&written.metadata)?;
        }
        // The files have other paths since the exchange.
        let named = |path: PathBuf| match path.strip_prefix(&written.metadata) {
            Ok(inside) => self.links.metadata.join(inside),
            Err(_) => path,
        };
        Ok(gone.into_iter().map(named).collect())
    }

    /// Returns true if the `HEAD` that the worker wrote contains the commits of the repository's own `HEAD` of the worktree.
    fn has_head_of_owner(&self, source: &Source, written: &Links) -> bool {
        let commit = |links: &Links| {
            let head = links::read(&links.metadata.join("HEAD"))?;
            match head.strip_prefix("ref:") {
                Some(name) => source.git().refname_to_id(name.trim()).ok(),
                None => Oid::from_str(&head).ok(),
            }
        };
        let Some(given) = commit(self.links) else { return true };
        commit(written).is_some_and(|written| {
            written == given || source.git().graph_descendant_of(written, given).unwrap_or(false)
        })
    }

    /// Makes the copy fit for the repository, with the repository's ties and settings.
    fn finish_copy(&self, copy: &Links, gone: &mut Vec<PathBuf>) -> Result<(), WorktreeError> {
        let failed = |source| WorktreeError::Private { path: copy.metadata.clone(), source };
        let linked = |source| WorktreeError::Link { path: copy.tree.clone(), source };
        self.clear_names().map_err(failed)?;
        // If the repository has repositories of submodules, this is the empty directory in their place.
        if fs::remove_dir(copy.metadata.join(MODULES)).is_err() {
            gone.extend(aside::put(&copy.metadata, c"modules")?);
        }
        copy.write_ties(&self.branch).map_err(linked)?;
        // If neither exists, the owner of the repository has removed the worktree during the run.
        let given = [self.links.metadata.clone(), self.replaced()].into_iter().find(|path| path.is_dir());
        let Some(given) = given else {
            return FIXED.iter().try_for_each(|name| {
                let settings = self.settings().filter(|_| *name == SETTINGS);
                copy.restore(name, settings.as_deref()).map_err(linked)
            });
        };
        for name in FIXED {
            copy.restore(name, links::read_bytes(&given.join(name)).as_deref()).map_err(linked)?;
        }
        for entry in fs::read_dir(&given).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (from, to) = (entry.path(), copy.metadata.join(entry.file_name()));
            if is_modules(&entry.file_name()) && to.symlink_metadata().is_err() {
                fs::rename(from, to).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Removes from the copy the locks that the worker has left, and directories in place of the files that are written next.
    fn clear_names(&self) -> std::io::Result<()> {
        for entry in fs::read_dir(self.metadata())? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_written = FIXED.contains(&&*name)
                || matches!(&*name, "HEAD" | "commondir" | "gitdir")
                || name.ends_with(links::TEMPORARY);
            let is_directory = entry.file_type()?.is_dir();
            if is_written && is_directory {
                fs::remove_dir_all(entry.path())?;
            }
        }
        remove_locks(&self.metadata(), DEPTH)
    }

    /// Puts the copy in place of the repository's own metadata, in one step if the file system supports that.
    fn exchange(&self, copy: &Path) -> Result<(), WorktreeError> {
        let place = &self.links.metadata;
        let failed = |source| WorktreeError::Private { path: place.clone(), source };
        match renameat_with(CWD, copy, CWD, place, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(()),
            // NFS has no exchange. A missing place is left by an interrupted try of these two steps.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOENT) => {
                if place.symlink_metadata().is_ok() {
                    fs::rename(place, self.replaced()).map_err(failed)?;
                }
                fs::rename(copy, place).map_err(failed)
            }
            Err(errno) => Err(failed(errno.into())),
        }
    }
}

/// Removes all entries whose names end in `.lock`, directories as well: git of the owner would fail at each of them. No name of
/// git's own files and of its references ends so (git-check-ref-format(1)).
fn remove_locks(dir: &Path, depth: usize) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let is_directory = entry.file_type()?.is_dir();
        let is_lock = entry.file_name().to_string_lossy().ends_with(".lock");
        match (is_lock, is_directory) {
            (true, true) => fs::remove_dir_all(entry.path())?,
            (true, false) => fs::remove_file(entry.path())?,
            (false, true) if depth > 0 => remove_locks(&entry.path(), depth - 1)?,
            (false, _) => {}
        }
    }
    Ok(())
}

/// Removes files that name missing or incomplete objects, because `git gc` and `git fetch` of the repository would fail
/// at them. Without `objects`, all objects in the repository count as complete. Returns the removed files.
pub(super) fn forget_missing(
    source: &Source,
    links: &Links,
    branch: &str,
    objects: Option<&mut Objects<'_>>,
) -> Result<Vec<PathBuf>, WorktreeError> {
    let git = source.git();
    let odb = git.odb().map_err(|source| WorktreeError::Publish { path: links.common.clone(), source })?;
    let mut gone = Vec::new();
    let index = links.metadata.join("index");
    let settled = index::settle(&index, source, branch);
    if settled.map_err(|source| WorktreeError::Private { path: index.clone(), source })? {
        gone.push(index);
    }
    let objects = RefCell::new(objects);
    let has = |id: Oid| {
        id.is_zero()
            || match objects.borrow_mut().as_mut() {
                Some(objects) => objects.fault(id).is_none(),
                None => odb.exists(id),
            }
    };
    let head = links::read(&links.metadata.join("HEAD")).and_then(|head| Oid::from_str(&head).ok());
    if head.is_some_and(|commit| git.find_commit(commit).is_err() || !has(commit)) {
        let failed = |source| WorktreeError::Link { path: links.tree.clone(), source };
        links.attach_head(branch).map_err(failed)?;
    }
    let names_present = |word: &str| Oid::from_str(word).is_ok_and(has);
    let pointer = |text: &str| {
        text.starts_with("ref:") || names_present(text.split_whitespace().next().unwrap_or_default())
    };
    let log = |text: &str| text.lines().all(|line| line.split(' ').take(2).all(names_present));
    let mut named = Vec::new();
    let mut look = |path: PathBuf, is_good: &dyn Fn(&str) -> bool| {
        if path.symlink_metadata().is_ok() && !links::read_whole(&path).is_some_and(|text| is_good(&text)) {
            named.push(path);
        }
    };
    for path in files_in(&links.metadata, 0) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // `FETCH_HEAD` is no reference, and empty after most commands.
        if name != "FETCH_HEAD" && (name.ends_with("_HEAD") || name == "AUTO_MERGE") {
            look(path, &pointer);
        }
    }
    for name in REBASE {
        look(links.metadata.join(name), &pointer);
    }
    for path in files_in(&links.metadata.join("refs"), DEPTH) {
        look(path, &pointer);
    }
    for path in files_in(&links.metadata.join("logs"), DEPTH) {
        look(path, &log);
    }
    for path in named {
        fs::remove_file(&path).map_err(|source| WorktreeError::Private { path: path.clone(), source })?;
        gone.push(path);
    }
    Ok(gone)
}

/// Copies the files of a directory with their times, because git compares the time of the index with the times of files.
fn copy(from: &Path, to: &Path, depth: usize) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 && !is_modules(&entry.file_name()) {
            copy(&path, &target, depth - 1)?;
        } else if kind.is_file() {
            fs::copy(&path, &target)?;
            let modified = entry.metadata()?.modified()?;
            fs::File::open(&target)?.file().set_modified(modified)?;
        }
    }
    Ok(())
}

/// Returns true if an entry holds the repositories of submodules, set aside or not.
fn is_modules(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name == MODULES || name.starts_with("modules.")
}

/// Returns a digest of the names and the content of all files of a directory.
fn digest(dir: &Path) -> std::io::Result<Oid> {
    let mut text = String::new();
    list(dir, dir, &mut text)?;
    Oid::hash_object(ObjectType::Blob, text.as_bytes()).map_err(std::io::Error::other)
}

fn list(top: &Path, dir: &Path, text: &mut String) -> std::io::Result<()> {
    let mut entries = fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type()?;
        let content = if kind.is_file() {
            Oid::hash_file(ObjectType::Blob, &path).map_err(std::io::Error::other)?.to_string()
        } else {
            "directory".to_owned()
        };
        let inside = path.strip_prefix(top).unwrap_or(&path);
        writeln!(text, "{content} {}", inside.as_os_str().as_encoded_bytes().escape_ascii())
            .map_err(std::io::Error::other)?;
        if kind.is_dir() {
            list(top, &path, text)?;
        }
    }
    Ok(())
}

/// Returns the regular files of a directory, down to `depth` levels beneath it.
fn files_in(dir: &Path, depth: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut next = vec![(dir.to_owned(), depth)];
    while let Some((dir, depth)) = next.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                Ok(kind) if kind.is_dir() && depth > 0 => next.push((entry.path(), depth - 1)),
                _ => {}
            }
        }
    }
    files
}

/// Opens the directories that the worker closed, so that nothing in them is skipped.
fn open_all(dir: &Path, depth: usize) {
    let Ok(opened) = open::directory(dir) else { return };
    drop(aside::unlock(&opened.fd, Mode::RWXU));
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_all(&entry.path(), depth - 1);
        }
    }
}

fn inode(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|found| found.ino())
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
