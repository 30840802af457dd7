//! Examines the work in a worktree, and removes a worktree without losing its work.

use std::path::PathBuf;

use git2::{Oid, Repository, StatusOptions};
use serde::{Deserialize, Serialize};

use crate::git::Source;
use crate::links::Links;
use crate::open::{self, OpenError};
use crate::removal::Removal;
use crate::tree::remove_tree;
use crate::worktree::{Note, Worktree, WorktreeError, forget_references};

/// Work that may be lost when a worktree is removed. Ignored files are always lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Nothing: the removal is refused if there are uncommitted changes, or commits that no other branch, remote or tag has.
    #[default]
    Refuse,
    /// Nothing, but the branch stays with its commits: the removal is refused if there are uncommitted changes, or commits
    /// that no branch, remote or tag has.
    KeepBranch,
    /// Everything: changes, commits and the branch.
    Accept,
}

/// Uncommitted changes of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Changes {
    /// No path has changes.
    Clean,
    /// At least one path has changes.
    Dirty {
        /// Changed, new or deleted paths; a new directory counts once, ignored files do not.
        count: usize,
    },
}

/// Work in a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The working tree.
    pub path: PathBuf,
    pub changes: Changes,
    /// Commit of the worktree's HEAD, in hex; none on a branch without commits.
    pub head_commit: Option<String>,
    /// Number of commits of the branch `task/<id>` that no other branch, remote branch or tag has.
    pub unmerged: usize,
    /// Number of commits of a detached HEAD that no branch, remote branch or tag has.
    pub detached: usize,
}

impl Worktree {
    /// Returns the work in the worktree, without changing anything.
    pub fn status(&self) -> Result<Status, WorktreeError> {
        let source = Source::open(&self.repository)?;
        let links = self.links(&source, &self.directory());
        match open::directory(&links.tree) {
            Ok(_) => self.examine(&source, &links),
            Err(OpenError::Missing { path }) => Err(WorktreeError::Missing { path }),
            Err(error) => Err(WorktreeError::OpenTree(error)),
        }
    }

    /// Returns the result that [`Worktree::remove`] would have, and removes nothing.
    pub fn judge(&self, loss: Loss) -> Result<Removal, WorktreeError> {
        let source = Source::open(&self.repository)?;
        let directory = self.directory();
        let links = self.links(&source, &directory);
        match open::directory(&directory) {
            Ok(_) => {}
            Err(OpenError::Missing { .. }) => return Ok(Removal::Absent),
            Err(error) => return Err(WorktreeError::OpenDirectory(error)),
        }
        let note = Note::take(&directory, &self.id)?;
        self.publish_unsealed(&source, &links, links.tree.symlink_metadata().is_ok())?;
        let judged = self.refuse(&source, &links, &note, loss);
        if !note.incomplete {
            note.discard()?;
        }
        judged?;
        Ok(if self.is_tracked(&source, &links)? { Removal::Removed } else { Removal::Absent })
    }

    /// Removes the worktree, its metadata and, unless it is to be kept, its branch.
    ///
    /// The caller holds the lease of the worktree. An interrupted removal is completed by the next removal; the next
    /// preparation makes the worktree anew. If the directory no longer exists, only the commits of the branch can refuse the
    /// removal.
    pub fn remove(&self, loss: Loss) -> Result<Removal, WorktreeError> {
        let source = Source::open(&self.repository)?;
        let directory = self.directory();
        let links = self.links(&source, &directory);
        let branch = self.branch();
        match open::directory(&directory) {
            Ok(_) => {}
            Err(OpenError::Missing { .. }) => return Ok(Removal::Absent),
            Err(error) => return Err(WorktreeError::OpenDirectory(error)),
        }
        let mut note = Note::take(&directory, &self.id)?;
        self.publish_unsealed(&source, &links, links.tree.symlink_metadata().is_ok())?;
        if let Err(refusal) = self.refuse(&source, &links, &note, loss) {
            if !note.incomplete {
                note.discard()?;
            }
            return Err(refusal);
        }
        let tracked = self.is_tracked(&source, &links)?;
        // After a crash beyond this line, the note tells the next call that the remains contain no work.
        note.mark_incomplete()?;
        remove_tree(&directory, &self.id).map_err(WorktreeError::Clear)?;
        // A worktree that its owner has moved is the owner's, with the branch that may be checked out there.
        let is_moved = links.other_tree().is_some();
        match loss {
            _ if is_moved => {}
            Loss::Accept => drop(remove_tree(&source.metadata(), &self.id).map_err(WorktreeError::Clear)?),
            Loss::Refuse | Loss::KeepBranch => self.remove_metadata(&source, &links)?,
        }
        self.private(&links).discard()?;
        if loss != Loss::KeepBranch && !is_moved {
            source.delete_branch(&branch)?;
        }
        if loss == Loss::Accept {
            forget_references(&source, &self.id)?;
        }
        note.discard()?;
        Ok(if tracked { Removal::Removed } else { Removal::Absent })
    }

    fn is_tracked(&self, source: &Source, links: &Links) -> Result<bool, WorktreeError> {
        let there = links.tree.symlink_metadata().is_ok();
        Ok(there || links.metadata.exists() || source.tip(&self.branch())?.is_some())
    }

    fn refuse(&self, source: &Source, links: &Links, note: &Note, loss: Loss) -> Result<(), WorktreeError> {
        if loss == Loss::Accept {
            return Ok(());
        }
        // An incomplete worktree contains no work, but its branch may have commits from before the interruption.
        if note.incomplete || links.tree.symlink_metadata().is_err() {
            return self.refuse_lost_commits(source, loss);
        }
        self.refuse_loss(source, links, loss)
    }

    fn refuse_loss(&self, source: &Source, links: &Links, loss: Loss) -> Result<(), WorktreeError> {
        let path = links.tree.clone();
        if links.metadata.join("locked").symlink_metadata().is_ok() {
            return Err(WorktreeError::Locked { path });
        }
        let status = self.examine(source, links)?;
        if let Changes::Dirty { count } = status.changes {
            return Err(WorktreeError::Dirty { path, count });
        }
        if status.detached > 0 {
            let branch = format!("the detached HEAD of {}", path.display());
            return Err(WorktreeError::Unmerged { branch, count: status.detached });
        }
        self.refuse_lost_commits(source, loss)
    }

    fn refuse_lost_commits(&self, source: &Source, loss: Loss) -> Result<(), WorktreeError> {
        let count = self.unmerged(source)?;
        if loss == Loss::Refuse && count > 0 {
            return Err(WorktreeError::Unmerged { branch: self.branch(), count });
        }
        Ok(())
    }

    fn unmerged(&self, source: &Source) -> Result<usize, WorktreeError> {
        let branch = self.branch();
        match source.tip(&branch)? {
            Some(tip) => Ok(source.commits_only_on(&[tip], &[&branch])?),
            None => Ok(0),
        }
    }

    fn examine(&self, source: &Source, links: &Links) -> Result<Status, WorktreeError> {
        let path = links.tree.clone();
        if !links.are_good(&self.branch()) {
            return Err(WorktreeError::Untied { path });
        }
        let read = || -> Result<(usize, Option<Oid>), git2::Error> {
            let tree = Repository::open(&links.tree)?;
            let mut options = StatusOptions::new();
            options.include_untracked(true).include_ignored(false);
            let count = tree.statuses(Some(&mut options))?.len();
            Ok((count, tree.head().ok().and_then(|head| head.target())))
        };
        let (count, head) =
            read().map_err(|source| WorktreeError::Inspect { path: links.tree.clone(), source })?;
        Ok(Status {
            path,
            changes: if count == 0 { Changes::Clean } else { Changes::Dirty { count } },
            head_commit: head.map(|oid| oid.to_string()),
            unmerged: self.unmerged(source)?,
            detached: match head {
                Some(head) => source.commits_only_on(&[head], &[])?,
                None => 0,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Base;
    use crate::testing::Fixture;

    #[test]
    fn a_worktree_without_work_of_its_own_goes_with_its_branch() {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let prepared = worktree.prepare(&Base::Head, None).unwrap();
        let status = worktree.status().unwrap();
        assert_eq!((status.changes, status.unmerged, status.detached), (Changes::Clean, 0, 0));
        assert_eq!(worktree.remove(Loss::Refuse).unwrap(), Removal::Removed);
        assert!(!prepared.path.exists() && !fixture.root.join(".git/worktrees/t_1").exists());
        assert!(fixture.git(&["branch", "--list", "task/*"]).is_empty());
        assert_eq!(worktree.remove(Loss::Refuse).unwrap(), Removal::Absent);
    }

    #[test]
    fn a_dirty_worktree_is_not_removed_unless_its_loss_is_accepted() {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let path = worktree.prepare(&Base::Head, None).unwrap().path;
        fs_err::write(path.join("README"), "changed").unwrap();
        fs_err::write(path.join("new"), "").unwrap();
        assert_eq!(worktree.status().unwrap().changes, Changes::Dirty { count: 2 });
        for loss in [Loss::Refuse, Loss::KeepBranch] {
            let error = worktree.remove(loss).unwrap_err();
            assert!(matches!(error, WorktreeError::Dirty { count: 2, .. }), "{error}");
        }
        assert_eq!(fs_err::read_to_string(path.join("README")).unwrap(), "changed");
        assert_eq!(worktree.remove(Loss::Accept).unwrap(), Removal::Removed);
        assert!(!path.exists());
    }

    #[test]
    fn commits_that_are_nowhere_else_keep_the_worktree_or_at_least_the_branch() {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let path = worktree.prepare(&Base::Head, None).unwrap().path;
        fixture.commit(&path, "work");
        assert_eq!(worktree.status().unwrap().unmerged, 1);
        let error = worktree.remove(Loss::Refuse).unwrap_err();
        assert!(matches!(error, WorktreeError::Unmerged { count: 1, .. }), "{error}");
        assert!(path.exists());
        assert_eq!(worktree.remove(Loss::KeepBranch).unwrap(), Removal::Removed);
        assert!(!path.exists());
        assert!(matches!(
            worktree.remove(Loss::Refuse).unwrap_err(),
            WorktreeError::Unmerged { count: 1, .. }
        ));
        fixture.git(&["merge", "-q", "task/t_1"]);
        assert_eq!(worktree.remove(Loss::Refuse).unwrap(), Removal::Removed);
    }

    #[test]
    fn commits_of_a_detached_head_count_even_when_the_branch_is_kept() {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let path = worktree.prepare(&Base::Head, None).unwrap().path;
        fixture.git_in(&path, &["checkout", "-q", "--detach"]);
        fixture.commit(&path, "adrift");
        assert_eq!(worktree.status().unwrap().detached, 1);
        let error = worktree.remove(Loss::KeepBranch).unwrap_err();
        assert!(matches!(error, WorktreeError::Unmerged { count: 1, .. }), "{error}");
        assert!(path.exists());
    }

    #[test]
    fn an_interrupted_removal_is_finished_and_never_taken_for_work() {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let path = worktree.prepare(&Base::Head, None).unwrap().path;
        fs_err::write(fixture.root.join(".worktrees/.t_1.incomplete"), "incomplete\n").unwrap();
        fs_err::remove_file(path.join("README")).unwrap();
        assert_eq!(worktree.remove(Loss::Refuse).unwrap(), Removal::Removed);
        assert!(!path.exists());
    }

    #[test]
    fn a_worktree_that_a_person_locked_stays() {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let path = worktree.prepare(&Base::Head, None).unwrap().path;
        fixture.git(&["worktree", "lock", path.to_str().unwrap()]);
        assert!(matches!(worktree.remove(Loss::Refuse).unwrap_err(), WorktreeError::Locked { .. }));
    }

    #[test]
    fn a_worktree_whose_git_file_was_replaced_is_not_judged() {
        let fixture = Fixture::new();
        let other = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let path = worktree.prepare(&Base::Head, None).unwrap().path;
        fs_err::write(path.join(".git"), format!("gitdir: {}/.git\n", other.root.display())).unwrap();
        assert!(matches!(worktree.status().unwrap_err(), WorktreeError::Untied { .. }));
        assert!(matches!(worktree.remove(Loss::Refuse).unwrap_err(), WorktreeError::Untied { .. }));
        assert!(path.exists() && other.root.join(".git/HEAD").exists());
    }
}
