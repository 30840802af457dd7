//! Finds the changes that a run left uncommitted in its worktree, and commits them if its task asks for that.
//!
//! Called only after the worktree is sealed, by the owner of its lease. A worker wrote the files, so the caller limits
//! time and memory, and the number and size of paths are limited here. No symbolic link is followed: a link is
//! committed as a link. No hook, filter, monitor or signing program of the repository is executed, because libgit2 runs
//! none of them.
//!
//! Agents commit only when they are asked to, so without this the branch of a task would be empty. The commit is
//! separate, so that a person recognizes it. The paths come from a comparison of the files with the commit, because a
//! worker can write anything into the index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use git2::{
    AttrCheckFlags, AttrValue, Commit, Delta, DiffOptions, Index, IndexEntryExtendedFlag, ObjectType, Oid,
    Repository, RepositoryState, Signature, Time, Tree,
};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use serde::{Deserialize, Serialize};

use crate::author::Author;
use crate::error::WorkspaceError;
use crate::git::Source;
use crate::links::{self, Links};
use crate::open::{self, OpenError};
use crate::repository::{self, RepositoryError, open_tree};
use crate::secret::{self, path_of};
use crate::uncommitted::{LeftBecause, LeftPath, NAMED, Uncommitted};
use crate::worktree::{Worktree, WorktreeError};

/// Limit on the changed paths of a commit.
const PATHS: usize = 100_000;
/// Limit on the bytes of a commit.
const BYTES: u64 = 512 << 20;
/// Size limit of a new file, in bytes.
const NEW_BYTES: u64 = 10 << 20;
/// Limit on the length of a named path, in characters.
const PATH: usize = 300;
/// Prefix of the new name of a repository inside the worktree after the worktree is sealed.
const SET_ASIDE: &[u8] = b".git.untrusted";
/// Attributes of a file that git converts by a program or by a character set.
const CONVERTED: [&str; 2] = ["filter", "working-tree-encoding"];
/// Prefix of the supervisor's messages in the log of a branch.
const OURS: &[u8] = b"supervisor: ";
/// Message in the log of the branch.
const TOLD: &str = "supervisor: committed what the run left uncommitted";

/// Terms of a commit of uncommitted changes. The same terms make the same commit again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitTerms {
    /// Person or profile that the commit names as its author and committer.
    pub author: Author,
    /// Message: a subject, an empty line, and the text.
    pub message: String,
    /// Time of the commit, in epoch seconds.
    pub at: i64,
}

/// Commits between which a run worked, in hex.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Commit of the branch at the start of the run.
    pub start: Option<String>,
    /// Commit of the branch as the run left it; none if the worktree was sealed before.
    pub tip: Option<String>,
}

/// Changed path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    /// The commit has the file as this blob.
    Modified(Oid),
    Deleted,
}

type Changes = BTreeMap<Vec<u8>, Change>;

impl Worktree {
    /// Finds the changes that a run left uncommitted, and commits them by the given terms; without terms nothing is
    /// committed.
    ///
    /// Ignored files are left out. New files over 10 MiB, files that look like secrets, files that git converts by a
    /// program, and repositories inside the worktree stay uncommitted and are listed.
    ///
    /// # Errors
    /// Fails if the working tree cannot be opened or read.
    pub fn rest(&self, span: &Span, terms: Option<&CommitTerms>) -> Result<Uncommitted, WorkspaceError> {
        let source = Source::open(&self.repository).map_err(WorktreeError::from)?;
        let links = self.links(&source, &self.directory());
        let top = match open::directory(&links.tree) {
            Ok(opened) => opened.fd,
            Err(OpenError::Missing { .. }) => return Ok(Uncommitted::default()),
            Err(error) => return Err(WorktreeError::OpenTree(error).into()),
        };
        let failed = |source| RepositoryError::Read {
            path: links.tree.clone(),
            what: "the uncommitted changes",
            source,
        };
        let git = open_tree(&links.tree)?;
        let rest = Rest { git: &git, source: &source, links: &links, top, branch: self.branch() };
        let settled = rest.settle(span, terms).map_err(&failed)?;
        Ok(Uncommitted { ahead: rest.ahead().map_err(&failed)?, ..settled })
    }
}

struct Rest<'a> {
    git: &'a Repository,
    source: &'a Source,
    links: &'a Links,
    top: OwnedFd,
    branch: String,
}

impl Rest<'_> {
    fn settle(&self, span: &Span, terms: Option<&CommitTerms>) -> Result<Uncommitted, git2::Error> {
        let Ok(head) = self.git.head().and_then(|head| head.peel_to_commit()) else {
            return Ok(hindered("HEAD of the worktree names no commit", &Changes::new()));
        };
        let supervisors_commits = match terms {
            Some(terms) => self.is_made(&head, span, terms)?,
            None => false,
        };
        let index = self.git.index()?;
        let changes = self.changes(&head.tree()?, &index)?;
        let hindrance = self.hindrance(span, head.id(), &index)?;
        if let Some(why) = hindrance.filter(|_| !supervisors_commits) {
            // A detached HEAD may hold commits that the branch does not have.
            let is_clean =
                changes.is_empty() && self.source.tip(&self.branch).ok().flatten() == Some(head.id());
            return Ok(if is_clean { Uncommitted::default() } else { hindered(&why, &changes) });
        }
        let (wanted, mut uncommitted) = self.sorted(&changes, &head.tree()?)?;
        let Some(terms) = terms else {
            uncommitted.extend(wanted.keys().map(|path| left_path(path, LeftBecause::Unasked)));
            return Ok(named(Uncommitted::default(), uncommitted));
        };
        if supervisors_commits {
            // An interrupted call has made the commit already.
            return Ok(named(self.made(&head)?, uncommitted));
        }
        if let Some(why) = self.too_much(&wanted) {
            uncommitted.extend(wanted.keys().map(|path| left_path(path, LeftBecause::Unasked)));
            return Ok(named(Uncommitted { hindrance: Some(why), ..Uncommitted::default() }, uncommitted));
        }
        let made = self.commit(&head, &wanted, terms, &mut uncommitted)?;
        Ok(named(made, uncommitted))
    }

    /// Counts the commits of the branch that the repository's own HEAD does not have.
    fn ahead(&self) -> Result<usize, git2::Error> {
        let git = self.source.git();
        let head = git.head().and_then(|head| head.peel_to_commit()).map(|commit| commit.id());
        match (self.source.tip(&self.branch), head) {
            (Ok(Some(tip)), Ok(head)) => Ok(git.graph_ahead_behind(tip, head)?.0),
            _ => Ok(0),
        }
    }

    /// Returns the reason why nothing can be committed on the branch; none if there is none.
    fn hindrance(&self, span: &Span, head: Oid, index: &Index) -> Result<Option<String>, git2::Error> {
        let named = links::read(&self.links.metadata.join("HEAD")).unwrap_or_default();
        let is_attached = named == format!("ref: refs/heads/{}", self.branch);
        let why = match self.git.state() {
            RepositoryState::Clean | RepositoryState::Bisect => None,
            RepositoryState::Merge => Some("a merge"),
            RepositoryState::Revert | RepositoryState::RevertSequence => Some("a revert"),
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => Some("a cherry-pick"),
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge
            | RepositoryState::ApplyMailbox
            | RepositoryState::ApplyMailboxOrRebase => Some("a rebase"),
        };
        if let Some(what) = why {
            return Ok(Some(format!("{what} is not finished")));
        }
        if index.has_conflicts() {
            return Ok(Some("the index has conflicts".to_owned()));
        }
        if !is_attached {
            return Ok(Some(format!("HEAD of the worktree is not on {}", self.branch)));
        }
        let is_known = match &span.tip {
            Some(tip) => *tip == head.to_string(),
            None => span.start.as_ref().is_some_and(|start| *start == head.to_string()) || self.is_ours()?,
        };
        Ok((!is_known).then(|| format!("{} was moved by somebody else during the run", self.branch)))
    }

    /// Returns true if HEAD is a commit that an interrupted call of this function made of these changes. A worker can
    /// write the same message, but neither after its run nor into the log of the branch.
    fn is_made(&self, head: &Commit<'_>, span: &Span, terms: &CommitTerms) -> Result<bool, git2::Error> {
        if head.message_bytes() != terms.message.as_bytes()
            || self.source.tip(&self.branch).ok().flatten() != Some(head.id())
        {
            return Ok(false);
        }
        let parent = head.parent_id(0).map(|id| id.to_string()).ok();
        Ok(span.tip.as_ref().map_or(self.last_told()?.as_deref() == Some(TOLD.as_bytes()), |tip| {
            parent.as_ref() == Some(tip)
        }))
    }

    /// Returns true if the latest entry in the log of the branch is the supervisor's.
    fn is_ours(&self) -> Result<bool, git2::Error> {
        Ok(self.last_told()?.is_some_and(|entries| entries.starts_with(OURS)))
    }

    /// Returns the last entry in the log of the branch.
    fn last_told(&self) -> Result<Option<Vec<u8>>, git2::Error> {
        let log = self.source.git().reflog(&format!("refs/heads/{}", self.branch))?;
        let last = log.get(0);
        Ok(last.as_ref().and_then(git2::ReflogEntry::message_bytes).map(<[u8]>::to_vec))
    }

    /// Returns the paths of the working tree that differ from a commit. The index is not trusted, because a worker can
    /// mark a changed file as unchanged. Only files that the index leaves out of the working tree do not count as
    /// deleted.
    fn changes(&self, tree: &Tree<'_>, index: &Index) -> Result<Changes, git2::Error> {
        let mut options = DiffOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).include_typechange(true);
        options.ignore_submodules(true).skip_binary_check(true);
        let found = repository::to_files(self.git, Some(tree), &mut options, &|_| true)?;
        let skipped = |entry: &git2::IndexEntry| {
            IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended).is_skip_worktree()
        };
        let skipped: BTreeSet<Vec<u8>> = index.iter().filter(skipped).map(|entry| entry.path).collect();
        let mut changes = Changes::new();
        for delta in found.deltas() {
            let old = delta.old_file();
            if old.mode() == git2::FileMode::Commit {
                continue;
            }
            let path = delta.new_file().path_bytes().or(old.path_bytes()).unwrap_or_default().to_vec();
            let change = match delta.status() {
                Delta::Deleted if skipped.contains(&path) => continue,
                Delta::Deleted => Change::Deleted,
                Delta::Added | Delta::Copied | Delta::Untracked => Change::New,
                Delta::Unmodified | Delta::Ignored => continue,
                Delta::Modified
                | Delta::Renamed
                | Delta::Typechange
                | Delta::Unreadable
                | Delta::Conflicted => Change::Modified(old.id()),
            };
            changes.insert(path, change);
        }
        // Adds ignored files that the worker has staged all the same.
        let staged = self.git.diff_tree_to_index(Some(tree), Some(index), None)?;
        for delta in staged.deltas().filter(|delta| delta.status() == Delta::Added) {
            let Some(path) = delta.new_file().path_bytes() else { continue };
            if delta.new_file().mode() != git2::FileMode::Commit && self.held(path).is_some() {
                changes.entry(path.to_vec()).or_insert(Change::New);
            }
        }
        Ok(changes)
    }

    /// Opens a path of the working tree without following symbolic links, to examine its kind and size.
    fn held(&self, path: &[u8]) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(self.top.as_fd(), path_of(path), flags, Mode::empty(), resolve).ok()
    }

    /// Divides the changes into a part to commit and a part that stays, in which each path has its reason.
    fn sorted(&self, changes: &Changes, tree: &Tree<'_>) -> Result<(Changes, Vec<LeftPath>), git2::Error> {
        let inside: BTreeSet<Vec<u8>> = changes.keys().filter_map(|path| repository_of(path)).collect();
        let mut wanted = Changes::new();
        let mut uncommitted = Vec::new();
        let mut entries = BTreeSet::new();
        for (path, change) in changes {
            if *change == Change::New {
                let inside = parents(path).chain([path.as_slice()]).find(|dir| inside.contains(*dir));
                if let Some(dir) = inside {
                    if entries.insert(dir.to_vec()) {
                        uncommitted.push(left_path(dir, LeftBecause::Repository));
                    }
                    continue;
                }
                // A directory may be a submodule in the commit.
                if parents(path).any(|dir| {
                    tree.get_path(path_of(dir)).is_ok_and(|entry| entry.kind() == Some(ObjectType::Commit))
                }) {
                    continue;
                }
            }
            match self.kept_back(path, *change)? {
                Some(why) => uncommitted.push(left_path(path, why)),
                None => drop(wanted.insert(path.clone(), *change)),
            }
        }
        Ok((wanted, uncommitted))
    }

    /// Returns the reason why a path is never committed.
    fn kept_back(&self, path: &[u8], change: Change) -> Result<Option<LeftBecause>, git2::Error> {
        if change == Change::Deleted {
            return Ok(None);
        }
        let Some(held) = self.held(path) else { return Ok(Some(LeftBecause::Unreadable)) };
        let Ok(stat) = fstat(&held) else { return Ok(Some(LeftBecause::Unreadable)) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Ok(None),
            _ => return Ok(Some(LeftBecause::Unreadable)),
        }
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if change == Change::New && size > NEW_BYTES {
            return Ok(Some(LeftBecause::TooLarge));
        }
        for attribute in CONVERTED {
            let value = self.git.get_attr_bytes(path_of(path), attribute, AttrCheckFlags::FILE_THEN_INDEX)?;
            if matches!(AttrValue::from_bytes(value), AttrValue::String(_) | AttrValue::Bytes(_)) {
                return Ok(Some(LeftBecause::Filter));
            }
        }
        if change == Change::New && secret::is_named(path_of(path)) {
            return Ok(Some(LeftBecause::Secret));
        }
        let Some(beginning) = beginning(&held) else { return Ok(Some(LeftBecause::Unreadable)) };
        if !secret::is_held(&beginning) {
            return Ok(None);
        }
        // A file that contained a secret before was committed by a person's choice.
        let was = if let Change::Modified(blob) = change { self.git.find_blob(blob).ok() } else { None };
        let was = was.is_some_and(|blob| {
            let content = blob.content();
            secret::is_held(&content[..content.len().min(secret::SEARCHED)])
        });
        Ok((!was).then_some(LeftBecause::Secret))
    }

    /// Returns the reason why the changes are too large for a commit; none if they are not.
    fn too_much(&self, wanted: &Changes) -> Option<String> {
        if wanted.len() > PATHS {
            return Some(format!("{} changed paths, the limit is {PATHS}", wanted.len()));
        }
        let size = |path: &Vec<u8>| {
            let stat = self.held(path).and_then(|held| fstat(&held).ok());
            stat.and_then(|stat| u64::try_from(stat.st_size).ok()).unwrap_or_default()
        };
        let bytes = wanted.keys().map(size).fold(0_u64, u64::saturating_add);
        (bytes > BYTES)
            .then(|| format!("{} MiB of changed files, the limit is {} MiB", bytes >> 20, BYTES >> 20))
    }

    /// Commits changes on the branch. A path that git does not accept stays uncommitted.
    fn commit(
        &self,
        head: &Commit<'_>,
        wanted: &Changes,
        terms: &CommitTerms,
        left: &mut Vec<LeftPath>,
    ) -> Result<Uncommitted, git2::Error> {
        let base = head.tree()?;
        let mut index = self.git.index()?;
        index.read_tree(&base)?;
        for (path, change) in wanted {
            let done = match change {
                Change::Deleted => index.remove_path(path_of(path)),
                Change::New | Change::Modified(_) => index.add_path(path_of(path)),
            };
            if done.is_err() {
                left.push(left_path(path, LeftBecause::Unreadable));
            }
        }
        let tree = index.write_tree()?;
        if tree == base.id() {
            return Ok(Uncommitted::default());
        }
        let git = self.source.git();
        let tree = git.find_tree(tree)?;
        let author = Signature::new(&terms.author.name, &terms.author.email, &Time::new(terms.at, 0))?;
        let parent = git.find_commit(head.id())?;
        let made = git.commit(None, &author, &author, &terms.message, &tree, &[&parent])?;
        let branch = format!("refs/heads/{}", self.branch);
        git.reference_matching(&branch, made, true, head.id(), TOLD)?;
        self.made(&git.find_commit(made)?)
    }

    /// Describes a commit that was made of uncommitted changes, and updates the index to it.
    fn made(&self, commit: &Commit<'_>) -> Result<Uncommitted, git2::Error> {
        let tree = commit.tree()?;
        let before = commit.parent(0)?.tree()?;
        let found = self.source.git().diff_tree_to_tree(Some(&before), Some(&tree), None)?;
        let paths: BTreeSet<Vec<u8>> = found
            .deltas()
            .flat_map(|delta| {
                [delta.old_file().path_bytes(), delta.new_file().path_bytes()]
                    .map(|path| path.map(<[u8]>::to_vec))
            })
            .flatten()
            .collect();
        // The index is written in memory alone, for the entries that git makes for the files.
        let mut wanted = self.git.index()?;
        wanted.read_tree(&tree)?;
        let path = self.links.metadata.join("index");
        if self.links.has_index() {
            let mut index = Index::open(&path)?;
            for path in &paths {
                match wanted.get_path(path_of(path), 0) {
                    Some(entry) => index.add(&entry)?,
                    None => index.remove_path(path_of(path))?,
                }
            }
            index.write()?;
        }
        Ok(Uncommitted {
            commit: Some(commit.id().to_string()),
            committed: paths.len(),
            ..Uncommitted::default()
        })
    }
}

/// Returns the directory around a repository that was set aside, for a path in that repository. At the top of the
/// working tree, returns the repository alone.
fn repository_of(path: &[u8]) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let at = parts.iter().position(|part| part.starts_with(SET_ASIDE))?;
    Some(parts[..at.max(1)].join(&b'/'))
}

/// Returns the directories above a path, the lowest last.
fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

/// Reads the beginning of an open file.
fn beginning(held: &OwnedFd) -> Option<Vec<u8>> {
    let file = File::open(format!("/proc/self/fd/{}", held.as_raw_fd())).ok()?;
    let mut bytes = Vec::new();
    file.take(secret::SEARCHED as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn left_path(path: &[u8], why: LeftBecause) -> LeftPath {
    let text = String::from_utf8_lossy(path);
    LeftPath { path: text.chars().take(PATH).collect(), why }
}

/// Returns changes that stay for one common reason.
fn hindered(why: &str, changes: &Changes) -> Uncommitted {
    let left = changes.keys().map(|path| left_path(path, LeftBecause::Unasked)).collect();
    named(Uncommitted { hindrance: Some(why.to_owned()), ..Uncommitted::default() }, left)
}

/// Adds the uncommitted paths, up to the limit of listed paths.
fn named(made: Uncommitted, mut uncommitted: Vec<LeftPath>) -> Uncommitted {
    uncommitted.sort_by(|a, b| a.path.cmp(&b.path));
    let more = uncommitted.len().saturating_sub(NAMED);
    uncommitted.truncate(NAMED);
    Uncommitted { left: uncommitted, more, ..made }
}

#[cfg(test)]
#[path = "rest_tests.rs"]
mod tests;
