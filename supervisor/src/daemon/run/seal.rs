//! What a run did in its worktree: taken over by its repository when the run has ended, and made safe to look at.

use kernel::LostArtifact;
use policies::Identity;
use workspace::{Job, Outcome, Worktree};

use crate::host::job::{self, Cause};

/// Takes over what a run committed in its worktree, and makes that safe to look at. Blocking. What was wrong is returned
/// for its readers; an error is the host's, and to be tried again.
pub(in crate::daemon) fn seal(
    worktree: Worktree,
    identity: Option<Identity>,
) -> Result<Vec<LostArtifact>, String> {
    let branch = worktree.branch();
    let write = vec![worktree.repository.clone()];
    let lost = |path: String, reason: String| LostArtifact { path, reason };
    match job::work(identity, job::system_reads(), write, Job::SealWorktree { worktree }) {
        Ok(Outcome::Sealed(sealed)) => Ok(sealed
            .set_aside
            .into_iter()
            .map(|path| {
                let reason = "the worker could write it, and it names what git would run or what is not there: a repository is \
                              renamed to .git.untrusted, a file of git's is removed";
                lost(path.display().to_string(), reason.to_owned())
            })
            .collect()),
        Ok(_) => Ok(vec![lost(branch, "the job process answered another question".to_owned())]),
        Err(failure) if failure.cause == Cause::Shortage => Err(failure.message),
        Err(failure) => {
            let hint = failure.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            Ok(vec![lost(branch, format!("{}{hint}", failure.message))])
        }
    }
}
