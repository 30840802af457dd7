//! Seals the worktree of an ended run: its repository takes over the commits, and its files become safe to read.

use kernel::LostArtifact;
use policies::Identity;
use workspace::{Job, Outcome, Worktree};

use host::job;

/// Reason why a file of a worktree was renamed or removed.
const SET_ASIDE: &str = "the worker could write it, and it names what git would run or what is not there: a repository is renamed \
                         to .git.untrusted, a file of git's is removed; rename it back once you have looked at it";

/// Result of sealing a worktree.
#[derive(Debug)]
pub(crate) struct SealedTree {
    /// Defects, for the readers of the handoff.
    pub lost: Vec<LostArtifact>,
    /// True if the repository has taken the run's commits over, and its files are the result of the run.
    pub is_taken: bool,
    /// Commit on which the run left its branch; none if the worktree was sealed before.
    pub tip: Option<String>,
}

impl SealedTree {
    /// A worktree whose commits could not be taken over.
    fn failed(lost: LostArtifact) -> Self {
        SealedTree { lost: vec![lost], is_taken: false, tip: None }
    }
}

/// Seals a worktree. Blocks.
///
/// # Errors
/// The host lacks a resource; the caller tries again.
pub(crate) fn seal(worktree: Worktree, identity: Option<Identity>) -> Result<SealedTree, String> {
    let (branch, tree) = (worktree.branch(), worktree.path());
    let write = vec![worktree.repository.clone()];
    let lost = |path: String, reason: String| LostArtifact { path, reason };
    match job::work(identity, job::system_reads(), write, Job::SealWorktree { worktree }) {
        Ok(Outcome::Sealed(sealed)) => {
            // Tags and stashes are not of the branch, and hold up nothing.
            let more = (sealed.more > 0).then(|| {
                lost(tree.display().to_string(), format!("{} more in it are renamed like these", sealed.more))
            });
            let reasons = sealed
                .set_aside
                .into_iter()
                .map(|path| lost(path.display().to_string(), SET_ASIDE.to_owned()));
            let not_kept = sealed.not_kept.map(|why| lost(branch, why));
            Ok(SealedTree {
                lost: reasons.chain(more).chain(not_kept).collect(),
                is_taken: !sealed.is_removed,
                tip: sealed.tip,
            })
        }
        Ok(_) => Ok(SealedTree::failed(lost(branch, "the job process answered another question".to_owned()))),
        Err(failure) if failure.cause.is_lack() => Err(failure.message),
        Err(failure) => {
            // A job that did not finish has withheld the worktree as well.
            let is_withheld = tree.join(".git").symlink_metadata().is_err();
            let withheld = || {
                is_withheld.then(|| format!("{} is withheld until the next run of its task", tree.display()))
            };
            let hint = failure.hint.or_else(withheld).map(|hint| format!(" ({hint})")).unwrap_or_default();
            Ok(SealedTree::failed(lost(branch, format!("{}{hint}", failure.message))))
        }
    }
}
