//! Takes over the new objects and the branch of a worker from the private part of its worktree.
//!
//! The worker has ended, and all files here are its work, so none is trusted. An object is read, which checks it
//! against its id, and written anew. The branch moves only to a commit whose objects are all complete.

use std::collections::BTreeMap;
use std::path::PathBuf;

use git2::{ErrorCode, Oid, Reference};

use super::metadata::forget_missing;
use super::objects::Objects;
use super::private::Private;
use super::{PREFIX, WorktreeError, beside};
use crate::git::Source;
use crate::irregular;
use crate::links;

/// Limit on the references that name one another (`SYMREF_MAXDEPTH` of git's refs.h).
const LINKS: usize = 5;
/// Message in the log of the branch.
const TOLD: &str = "supervisor: taken over from the run";

/// Result for a private part whose branch is in the repository now.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// Files of the worktree's metadata that were removed, because they name missing objects.
    pub(crate) gone: Vec<PathBuf>,
    /// Reason why not all tags and stashes are kept.
    pub(crate) not_kept: Option<WorktreeError>,
}

/// Result for a private part whose worktree is gone.
#[derive(Debug, Default)]
pub(crate) struct Departed {
    /// Reason why not all tags and stashes are kept.
    pub(crate) not_kept: Option<WorktreeError>,
    /// Reference that keeps the commits of a detached `HEAD`.
    pub(crate) head: Option<String>,
}

/// Result for a private part whose objects are in the repository now.
struct TakenOver {
    /// Result for the branch, with the reason why not all tags and stashes are kept.
    references: Result<Option<WorktreeError>, WorktreeError>,
    gone: Vec<PathBuf>,
}

impl Private<'_> {
    /// Takes over the worker's objects and references, and removes the private part. Does nothing if there is none. The
    /// next call repeats an interrupted call.
    ///
    /// # Errors
    /// Fails if the branch could not be moved, or nothing could be taken over.
    pub(crate) fn publish(&self, source: &Source) -> Result<Published, WorktreeError> {
        let Some(given) = self.given() else { return Ok(Published::default()) };
        let TakenOver { references, gone } = source.shared(|| self.take_over(source, given))?;
        // Objects that cannot be taken over now cannot be later either, because the next run begins from the
        // repository.
        self.discard()?;
        references.map(|not_kept| Published { gone, not_kept })
    }

    /// Takes over the objects and references alone, and removes the private part. Without the worktree, only the commit
    /// of a detached `HEAD` is of use in the metadata.
    pub(crate) fn publish_commits(&self, source: &Source) -> Result<Departed, WorktreeError> {
        let Some(given) = self.given() else { return Ok(Departed::default()) };
        let taken = source.shared(|| {
            let mut objects = self.take_objects(source)?;
            let references = self.take_references(source, given, &mut objects);
            let written = self.written_metadata().metadata;
            let head = beside::keep_head(source, self.id, &written)?;
            references.map(|not_kept| Departed { not_kept, head })
        });
        // If the disk is full, a later call may succeed.
        if !matches!(taken, Err(WorktreeError::Store { .. })) {
            self.discard()?;
        }
        taken
    }

    /// Takes over the objects, then the references and the metadata. Each step names only objects that earlier steps
    /// have put into the repository. Returns the result for the references, and the removed files of the metadata.
    fn take_over(&self, source: &Source, given: Oid) -> Result<TakenOver, WorktreeError> {
        let (references, gone) = match self.take_objects(source) {
            Ok(mut objects) => {
                let references = self.take_references(source, given, &mut objects);
                if let Err(error @ WorktreeError::Store { .. }) = references {
                    return Err(error);
                }
                (references, self.take_metadata(source, &mut objects))
            }
            // If the disk is full, a later call may succeed.
            Err(error @ WorktreeError::Store { .. }) => return Err(error),
            // Without its objects, the metadata of the run names missing objects.
            Err(error) => (Err(error), forget_missing(source, self.links, &self.branch, None)),
        };
        // Only the metadata names the commits of a detached HEAD.
        Ok(TakenOver { references, gone: gone? })
    }

    pub(super) fn take_objects<'s>(&self, source: &'s Source) -> Result<Objects<'s>, WorktreeError> {
        self.disarm_metadata()?;
        if let Some(found) = irregular::planted(&self.dir()) {
            return Err(WorktreeError::Planted { found });
        }
        let objects = self.copy_objects(source)?;
        self.keep_large()?;
        Ok(objects)
    }

    fn take_references(
        &self,
        source: &Source,
        given: Oid,
        objects: &mut Objects<'_>,
    ) -> Result<Option<WorktreeError>, WorktreeError> {
        self.detach_from_foreign_branch(source)?;
        let publication = self.keep(source, objects);
        if let Some(tip) = self.tip().filter(|tip| *tip != given) {
            self.refuse_incomplete(source, tip, objects)?;
            self.move_branch(source, given, tip)?;
        }
        Ok(publication.err())
    }

    /// Copies the objects that the worker made.
    fn copy_objects<'s>(&self, source: &'s Source) -> Result<Objects<'s>, WorktreeError> {
        // The worker may have written the path of any directory into this file.
        let borrowed = self.objects().join("info/alternates");
        match fs_err::remove_file(&borrowed) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(WorktreeError::Private { path: borrowed, source });
            }
            _ => {}
        }
        Objects::take(&self.objects(), source)
    }

    /// Returns the commit at which the worker left its branch; none if there is no complete private part.
    pub(crate) fn worker_tip(&self) -> Option<Oid> {
        let given = self.given()?;
        Some(self.tip().unwrap_or(given))
    }

    /// Returns the commit at the tip of the worker's branch.
    fn tip(&self) -> Option<Oid> {
        self.branch_tip(&format!("refs/heads/{}", self.branch))
    }

    /// Returns the commit of a branch `task/…` as the worker's git finds it.
    fn branch_tip(&self, name: &str) -> Option<Oid> {
        let mut name = name.to_owned();
        for _ in 0..LINKS {
            if !name.starts_with(&format!("refs/heads/{PREFIX}/")) || !Reference::is_valid_name(&name) {
                return None;
            }
            let text = links::read(&self.dir().join(&name)).unwrap_or_default();
            match text.strip_prefix("ref:") {
                Some(next) => next.trim().clone_into(&mut name),
                None => return Oid::from_str(&text).ok().or_else(|| self.packed_references().remove(&name)),
            }
        }
        None
    }

    /// Returns the packed references that the worker's git has written or changed.
    pub(super) fn packed_references(&self) -> BTreeMap<String, Oid> {
        let Some(given) = links::read_whole(&self.packed_as_given()) else { return BTreeMap::new() };
        let given: BTreeMap<&str, &str> = given.lines().filter_map(packed_line).collect();
        let text = links::read_whole(&self.packed()).unwrap_or_default();
        let changed = text.lines().filter_map(packed_line).filter(|(name, id)| given.get(name) != Some(id));
        changed.filter_map(|(name, id)| Some((name.to_owned(), Oid::from_str(id).ok()?))).collect()
    }

    /// Detaches a HEAD that the worker left on another branch `task/…`, which only the worker sees. The commits stay reachable from
    /// the worktree's HEAD.
    fn detach_from_foreign_branch(&self, source: &Source) -> Result<(), WorktreeError> {
        let written = self.written_metadata();
        let head = links::read(&written.metadata.join("HEAD")).unwrap_or_default();
        let Some(name) = head.strip_prefix("ref:").map(str::trim) else { return Ok(()) };
        if name == format!("refs/heads/{}", self.branch) {
            return Ok(());
        }
        let Some(tip) = self.branch_tip(name).filter(|tip| source.git().find_commit(*tip).is_ok()) else {
            return Ok(());
        };
        written
            .detach_head(tip)
            .map_err(|source| WorktreeError::Link { path: self.links.tree.clone(), source })
    }

    /// Refuses a tip whose history has a missing or defective object.
    fn refuse_incomplete(
        &self,
        source: &Source,
        tip: Oid,
        objects: &mut Objects<'_>,
    ) -> Result<(), WorktreeError> {
        let refused = |object: Oid, why: &'static str| WorktreeError::Incomplete {
            branch: self.branch.clone(),
            commit: tip.to_string(),
            object: object.to_string(),
            why,
        };
        if let Some(fault) = objects.fault(tip) {
            return Err(refused(fault.object, fault.why));
        }
        source.git().find_commit(tip).map(drop).map_err(|_| refused(tip, "is not a commit"))
    }

    /// Moves the branch. If another process moved it meanwhile, and the worker's commits do not descend from its new commit, the
    /// commits are kept beside the branch.
    fn move_branch(&self, source: &Source, given: Oid, tip: Oid) -> Result<(), WorktreeError> {
        let git = source.git();
        let failed = |source| WorktreeError::Publish { path: self.links.common.clone(), source };
        let name = format!("refs/heads/{}", self.branch);
        loop {
            let now = source.tip(&self.branch)?;
            let moved = match now {
                Some(now) if now == tip => return Ok(()),
                Some(now) if now != given && !git.graph_descendant_of(tip, now).map_err(failed)? => {
                    let kept = beside::keep(source, self.id, tip)?;
                    return Err(WorktreeError::Moved { branch: self.branch.clone(), kept });
                }
                Some(now) => beside::patiently(|| git.reference_matching(&name, tip, true, now, TOLD)),
                None => beside::patiently(|| git.reference(&name, tip, false, TOLD)),
            };
            match moved {
                Ok(_) => return Ok(()),
                // Another process has moved or made the branch since it was read.
                Err(error)
                    if matches!(error.code(), ErrorCode::Modified | ErrorCode::Exists)
                        && source.tip(&self.branch)? != now => {}
                Err(error) => return Err(beside::not_stored(source)(error)),
            }
        }
    }
}

/// Returns the name and the object of a line of packed references.
fn packed_line(line: &str) -> Option<(&str, &str)> {
    line.split_once(' ').map(|(id, name)| (name, id))
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
