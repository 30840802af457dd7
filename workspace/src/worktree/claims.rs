//! Branches that count as checked out because of a worktree's metadata. Git refuses to check out such a branch anywhere
//! else, so a run may keep only its own branch.
//!
//! See decision 0269.

use git2::Oid;

use super::WorktreeError;
use crate::git::Source;
use crate::links::{self, Links};

/// Files with the branch that is being rebased.
const REBASED: [&str; 2] = ["rebase-merge/head-name", "rebase-apply/head-name"];
/// File with the branches that a rebase moves at its end.
const MOVED: &str = "rebase-merge/update-refs";
/// File with the branch on which a `git bisect` began.
const SEARCHED: &str = "BISECT_START";
/// Text in place of an unreadable reference. It differs from every branch, so such a file is replaced.
const UNREADABLE: &str = "refs/";
/// Text that git writes in place of a branch for a rebase without a branch.
const NO_BRANCH: &str = "detached HEAD\n";

/// Releases each branch except `branch` that the metadata claims after a run and did not claim before it. A `HEAD` on
/// such a branch is detached at its commit, or attached to `branch` if it has no commit.
pub(super) fn give_up(
    source: &Source,
    written: &Links,
    before: &Links,
    branch: &str,
) -> Result<(), WorktreeError> {
    let failed = |source| WorktreeError::Link { path: written.tree.clone(), source };
    let full = format!("refs/heads/{branch}");
    let text = |of: &Links, name: &str| {
        let path = of.metadata.join(name);
        path.symlink_metadata().ok()?;
        // Git accepts bytes that are not UTF-8 text, and any number of line feeds after a name.
        Some(links::read_whole(&path).map_or_else(|| UNREADABLE.to_owned(), |text| text.trim().to_owned()))
    };
    let read = |name: &str| text(written, name).filter(|now| text(before, name).as_ref() != Some(now));
    if let Some(head) = read("HEAD")
        && Oid::from_str(&head).is_err()
        && head != format!("ref: {full}")
    {
        let name = head.strip_prefix("ref:").unwrap_or_default().trim();
        let found = source.git().find_reference(name).and_then(|found| found.peel_to_commit());
        let released = match found {
            Ok(commit) => written.detach_head(commit.id()),
            Err(_) => written.attach_head(branch),
        };
        released.map_err(failed)?;
    }
    for name in REBASED {
        if read(name).is_some_and(|text| text.starts_with("refs/") && text != full) {
            written.restore(name, Some(NO_BRANCH.as_bytes())).map_err(failed)?;
        }
    }
    if read(SEARCHED).is_some_and(|text| text != branch && Oid::from_str(&text).is_err()) {
        written.restore(SEARCHED, Some(format!("{branch}\n").as_bytes())).map_err(failed)?;
    }
    let is_foreign = |line: &str| line.starts_with("refs/") && line != full;
    if read(MOVED).is_some_and(|text| text.lines().any(is_foreign)) {
        written.restore(MOVED, None).map_err(failed)?;
    }
    Ok(())
}
