//! What a run did in its worktree: taken over by its repository when the run has ended, and made safe to look at.

use kernel::LostArtifact;
use policies::Identity;
use workspace::{Job, Outcome, Worktree};

use crate::host::job::{self, Cause};

/// Why something of a worktree has another name now, or is gone.
const SET_ASIDE: &str = "the worker could write it, and it names what git would run or what is not there: a repository is renamed \
                         to .git.untrusted, a file of git's is removed; rename it back once you have looked at it";

/// Takes over what a run committed in its worktree, and makes that safe to look at. Blocking. What was wrong is returned
/// for its readers; an error is the host's, and to be tried again.
pub(in crate::daemon) fn seal(
    worktree: Worktree,
    identity: Option<Identity>,
) -> Result<Vec<LostArtifact>, String> {
    let (branch, tree) = (worktree.branch(), worktree.path());
    let write = vec![worktree.repository.clone()];
    let lost = |path: String, reason: String| LostArtifact { path, reason };
    match job::work(identity, job::system_reads(), write, Job::SealWorktree { worktree }) {
        Ok(Outcome::Sealed(sealed)) => {
            let more = (sealed.more > 0).then(|| {
                lost(tree.display().to_string(), format!("{} more in it are renamed like these", sealed.more))
            });
            let told = sealed
                .set_aside
                .into_iter()
                .map(|path| lost(path.display().to_string(), SET_ASIDE.to_owned()));
            Ok(told.chain(more).collect())
        }
        Ok(_) => Ok(vec![lost(branch, "the job process answered another question".to_owned())]),
        Err(failure) if failure.cause == Cause::Shortage => Err(failure.message),
        Err(failure) => {
            // A job that came to no end has taken it away as well.
            let is_withheld = tree.join(".git").symlink_metadata().is_err();
            let withheld = || {
                is_withheld.then(|| format!("{} is withheld until the next run of its task", tree.display()))
            };
            let hint = failure.hint.or_else(withheld).map(|hint| format!(" ({hint})")).unwrap_or_default();
            Ok(vec![lost(branch, format!("{}{hint}", failure.message))])
        }
    }
}
