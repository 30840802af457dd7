//! Ends the work of a run in a worktree: takes the work over, and removes traps that it planted.
//!
//! See decision 0213.

use std::path::PathBuf;

use fs_err as fs;
use git2::{Index, Oid};
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use super::metadata::forget_missing;
use super::publish::Published;
use super::{Worktree, WorktreeError, aside, provide_index};
use crate::git::Source;
use crate::irregular;
use crate::links::{self, Links};
use crate::open::{self, OpenError};

/// Limit on the listed paths of renamed entries.
const NAMED: usize = 50;

/// Result of sealing a worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Repositories in the worktree that were renamed, because git would run programs that their settings name. Also an
    /// index and a log of HEAD that were removed, because they cannot be read or name missing objects.
    pub set_aside: Vec<PathBuf>,
    /// Number of further paths that were set aside.
    #[serde(default)]
    pub more: usize,
    /// Commit of the branch as the run left it, in hex; none if the worktree was sealed before.
    pub tip: Option<String>,
    /// Reason why not all tags and stashes of the run are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
    /// True if the owner of the repository has removed the worktree during the run. Its files may be remains of that
    /// removal, and are no result.
    #[serde(default)]
    pub is_removed: bool,
}

impl Worktree {
    /// Takes over the commits of a run, and makes the worktree safe to inspect.
    ///
    /// Called only after the end of the run, by the owner of the worktree's lease. First the worktree loses its `.git`,
    /// by which git finds everything else. It gets `.git` back once git follows no file any more that the worker wrote:
    /// the files that link the worktree to the repository are written anew, and every repository inside is renamed,
    /// because git would run programs that its settings name. An interrupted call is repeated by the next call, or by
    /// the next preparation.
    ///
    /// # Errors
    /// [`WorktreeError::Withheld`] if a step fails. The worktree has no `.git` until a person has inspected it.
    pub fn seal(&self) -> Result<Sealed, WorktreeError> {
        let source = Source::open(&self.repository)?;
        let links = self.links(&source, &self.directory());
        match open::directory(&links.tree) {
            Ok(_) => {}
            Err(OpenError::Missing { .. }) => return self.seal_gone(&source, &links),
            Err(error) => return Err(WorktreeError::OpenTree(error)),
        }
        let private = self.private(&links);
        let is_removed = private.given().is_some() && private.is_removed();
        let mut set_aside = self.close(&links).map_err(|source| WorktreeError::Withheld {
            path: links.tree.clone(),
            metadata: links.metadata.clone(),
            source: Box::new(source),
        })?;
        source.shared(|| self.tie(&links))?;
        let tip = private.worker_tip().map(|tip| tip.to_string());
        let Published { gone, not_kept } = if private.given().is_some() {
            private.publish(&source)?
        } else {
            let gone = forget_missing(&source, &links, &self.branch(), None)?;
            Published { gone, ..Published::default() }
        };
        if !links.has_index() {
            // Without an index, the next `git commit` there would delete all files. If HEAD has no commit, no index can
            // be made.
            source.shared(|| provide_index(&links)).unwrap_or_default();
        }
        set_aside.extend(gone);
        let more = set_aside.len().saturating_sub(NAMED);
        set_aside.truncate(NAMED);
        let removed = || WorktreeError::Gone { path: links.tree.clone(), places: self.branch() };
        let not_kept = not_kept.or_else(|| is_removed.then(removed)).map(|error| error.to_string());
        Ok(Sealed { set_aside, more, tip, not_kept, is_removed })
    }

    /// Takes over the commits of a run whose worktree the owner of the repository has removed or moved.
    fn seal_gone(&self, source: &Source, links: &Links) -> Result<Sealed, WorktreeError> {
        let moved_to = links.other_tree();
        // The files that the worker wrote are as dangerous at another path.
        let closed = moved_to.as_deref().map_or_else(|| Ok(Vec::new()), aside::put_embedded);
        let is_closed = closed.is_ok();
        let mut set_aside = closed.unwrap_or_default();
        let more = set_aside.len().saturating_sub(NAMED);
        set_aside.truncate(NAMED);
        let private = self.private(links);
        let Some(tip) = private.worker_tip() else {
            return Ok(Sealed { set_aside, more, ..Sealed::default() });
        };
        let given = private.given();
        let departed = private.publish_commits(source)?;
        // The index of a tree that is not safe stays without the entries by which git would follow its repositories.
        if let Some(given) = given.filter(|_| moved_to.is_some() && is_closed) {
            // An unreadable index is left to the owner.
            source.shared(|| self.follow_branch(source, links, given)).unwrap_or_default();
        }
        let not_kept = departed.not_kept.unwrap_or_else(|| WorktreeError::Gone {
            path: links.tree.clone(),
            places: std::iter::once(self.branch()).chain(departed.head).collect::<Vec<_>>().join(" and "),
        });
        let (tip, not_kept) = (Some(tip.to_string()), Some(not_kept.to_string()));
        Ok(Sealed { set_aside, more, tip, not_kept, ..Sealed::default() })
    }

    /// Brings the index of a moved worktree to the new commit of its branch, if nothing was staged. The next `git commit`
    /// there would undo the commits of the run.
    fn follow_branch(&self, source: &Source, links: &Links, given: Oid) -> Result<(), git2::Error> {
        let head = links::read(&links.metadata.join("HEAD")).unwrap_or_default();
        let Ok(Some(tip)) = source.tip(&self.branch()) else { return Ok(()) };
        if head != format!("ref: refs/heads/{}", self.branch()) || tip == given {
            return Ok(());
        }
        let git = source.git();
        let mut index = Index::open(&links.metadata.join("index"))?;
        let before = git.find_commit(given)?.tree()?;
        if git.diff_tree_to_index(Some(&before), Some(&index), None)?.deltas().len() > 0 {
            return Ok(());
        }
        index.read_tree(&git.find_commit(tip)?.tree()?)?;
        index.write()
    }

    /// Renames all entries that git follows and the worker wrote.
    fn close(&self, links: &Links) -> Result<Vec<PathBuf>, WorktreeError> {
        untie(links)?;
        self.disarm(links)?;
        let mut set_aside = aside::put_embedded(&links.tree)?;
        // `git submodule update` would take an existing repository for its own.
        set_aside.extend(aside::put(&links.metadata, c"modules")?);
        Ok(set_aside)
    }

    /// Removes entries that would make git wait or run a program, before the worktree is opened.
    pub(crate) fn disarm(&self, links: &Links) -> Result<(), WorktreeError> {
        // A repository in place of the file `.git` is kept, because it may contain work.
        if links.tree.join(".git").symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            aside::put(&links.tree, c".git")?;
        }
        // Git would wait for a HEAD or index that is a FIFO, and write to the target of a link.
        irregular::remove_planted(&links.metadata)
            .map_err(|(path, source)| WorktreeError::Private { path, source })?;
        match self.private(links).settings() {
            Some(settings) => links
                .restore("config.worktree", Some(&settings))
                .map_err(|source| WorktreeError::Link { path: links.tree.clone(), source }),
            None => Ok(()),
        }
    }

    /// Repairs the files that name the repository of the worktree.
    fn tie(&self, links: &Links) -> Result<(), WorktreeError> {
        let failed = |source| WorktreeError::Link { path: links.tree.clone(), source };
        if links.are_good(&self.branch()) { Ok(()) } else { links.write(&self.branch()).map_err(failed) }
    }
}

/// Removes the file by which git finds the repository of a working tree.
fn untie(links: &Links) -> Result<(), WorktreeError> {
    let path = links.tree.join(".git");
    let failed = |source| WorktreeError::SetAside { path: path.clone(), source };
    let top = open::directory(&links.tree).map_err(WorktreeError::OpenTree)?;
    aside::unlock(&top.fd, Mode::RWXU).map_err(failed)?;
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => aside::put(&links.tree, c".git").map(drop),
        Ok(_) => fs::remove_file(&path).map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(failed(source)),
    }
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
