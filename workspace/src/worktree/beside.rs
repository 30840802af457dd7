//! References for commits that have no place on the branch of their worktree: `refs/supervisor/<id>`, then
//! `refs/supervisor/<id>-2` and so on. A reference to other commits is not moved.

use std::path::Path;
use std::time::{Duration, Instant};

use git2::{ErrorCode, Oid};

use super::WorktreeError;
use crate::git::Source;
use crate::links;
use crate::name::Name;

/// Directory of the references.
const KEPT: &str = "refs/supervisor";
/// Message in the log of a reference.
const TOLD: &str = "supervisor: kept beside its branch";
/// Longest wait for another git that has a reference locked. Git holds such a lock for milliseconds.
const LONGEST: Duration = Duration::from_secs(1);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Keeps a commit under a free name. Returns the name.
///
/// # Errors
/// [`WorktreeError::Store`] if the reference cannot be written.
pub(super) fn keep(source: &Source, id: &Name, commit: Oid) -> Result<String, WorktreeError> {
    let git = source.git();
    let contains = |all: Oid, one: Oid| all == one || git.graph_descendant_of(all, one).unwrap_or(false);
    let value = |name: &str| git.refname_to_id(name).ok();
    let mut number = 1_usize;
    loop {
        let name = if number == 1 { format!("{KEPT}/{id}") } else { format!("{KEPT}/{id}-{number}") };
        let kept = value(&name);
        if kept.is_some_and(|kept| contains(kept, commit)) {
            return Ok(name);
        }
        if kept.is_some_and(|kept| !contains(commit, kept)) {
            number += 1;
            continue;
        }
        let written = match kept {
            Some(kept) => patiently(|| git.reference_matching(&name, commit, true, kept, TOLD)),
            None => patiently(|| git.reference(&name, commit, false, TOLD)),
        };
        match written {
            Ok(_) => return Ok(name),
            // Another process has written the reference since it was read.
            Err(error)
                if matches!(error.code(), ErrorCode::Modified | ErrorCode::Exists)
                    && value(&name) != kept => {}
            Err(error) => return Err(not_stored(source)(error)),
        }
    }
}

/// Keeps the commit of a detached `HEAD` if no branch and no tag has it. Returns the name of the reference.
pub(super) fn keep_head(
    source: &Source,
    id: &Name,
    metadata: &Path,
) -> Result<Option<String>, WorktreeError> {
    let head = links::read(&metadata.join("HEAD")).and_then(|head| Oid::from_str(&head).ok());
    let Some(head) = head.filter(|head| source.git().find_commit(*head).is_ok()) else { return Ok(None) };
    if source.commits_only_on(&[head], &[])? == 0 {
        return Ok(None);
    }
    keep(source, id, head).map(Some)
}

/// Writes a reference. Waits a little for another git that has it locked, as git itself does (`core.filesRefLockTimeout`).
pub(super) fn patiently<T>(mut write: impl FnMut() -> Result<T, git2::Error>) -> Result<T, git2::Error> {
    let until = Instant::now() + LONGEST;
    loop {
        match write() {
            Err(error) if error.code() == ErrorCode::Locked && Instant::now() < until => {
                std::thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}

/// Makes the error of a failed write to the references of a repository.
pub(super) fn not_stored(source: &Source) -> impl FnOnce(git2::Error) -> WorktreeError + use<> {
    let path = source.common.join("refs");
    move |source| WorktreeError::Store { path, source }
}
