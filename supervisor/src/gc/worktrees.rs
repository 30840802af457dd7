//! The git worktree of a task that is over: it goes when all that is in it is somewhere else too.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel::{Run, Task};
use workspace::{Job, Loss, Name, WorkspaceSpec, Worktree, directory};

use super::{Deed, Fate, places};
use crate::daemon::{system_reads, work_as};

/// Returns where the worktree of a task is or was; none for a task with another kind of workspace.
pub(super) fn place(task: &Task) -> Option<(PathBuf, Worktree)> {
    let Ok(WorkspaceSpec::Worktree { repository: Some(repository) }) = task.workspace.parse() else {
        return None;
    };
    let worktree = Worktree::new(repository, Name::new(task.id.as_str()).ok()?);
    Some((worktree.path(), worktree))
}

/// Looks at the worktree, or removes it with its branch. Blocking.
pub(super) fn collect(
    worktree: Worktree,
    path: &Path,
    runs: &[Run],
    leases: &Path,
    board: &str,
    deed: Deed,
) -> Fate {
    let take = || {
        let meta = places::directory(path)?;
        let here = path.display().to_string();
        let Some(run) = runs.iter().rev().find(|run| run.workspace_path.as_deref() == Some(here.as_str()))
        else {
            return Err(Fate::Foreign("no run of its task worked there".to_owned()));
        };
        let expected = run.worker_uid.unwrap_or_else(places::own_uid);
        if meta.uid() != expected {
            return Err(Fate::Foreign(format!(
                "it belongs to uid {}, and its worker was uid {expected}",
                meta.uid()
            )));
        }
        let owner = directory::owner_of(&worktree.repository)
            .map_err(|e| Fate::Stuck(crate::lanes::with_causes(&e)))?;
        if owner.uid != expected {
            return Err(Fate::Foreign(format!("its repository belongs to uid {} now", owner.uid)));
        }
        let _lease = places::lease(leases, path, &meta, board)?;
        let identity = places::identity(owner.uid, owner.gid);
        let size = places::measure(identity, &worktree.directory(), &worktree.id)?;
        let write = vec![worktree.repository.clone()];
        let job = match deed {
            Deed::Look => Job::JudgeWorktree { worktree, loss: Loss::Refuse },
            Deed::Remove => Job::RemoveWorktree { worktree, loss: Loss::Refuse },
        };
        work_as(identity, system_reads(), write, job).map_err(places::stuck)?;
        Ok(Fate::Gone(size))
    };
    take().unwrap_or_else(|fate| fate)
}
