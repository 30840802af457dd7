//! Collects the git worktree of a task that is over: it is removed if all its contents exist elsewhere too, or are
//! discarded.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel::{BoardName, Run, Task, WorkspaceSpec};
use workspace::{Job, Loss, Name, Origin, Size, Worktree, directory};

use super::{CollectResult, Sweep, removal_checks};
use base::paths::Root;
use host::job::{self, Cause, JobFailure};

/// Returns the path of a task's worktree; none for a task with another kind of workspace.
pub(super) fn worktree_of(task: &Task) -> Option<(PathBuf, Worktree)> {
    let Some(WorkspaceSpec::Worktree { repository: Some(repository) }) = task.workspace.spec() else {
        return None;
    };
    let worktree = Worktree::new(repository.clone(), Name::new(task.id.as_str()).ok()?);
    Some((worktree.path(), worktree))
}

/// Extent to which a worktree is collected.
pub(super) struct CollectTerms {
    pub(super) sweep: Sweep,
    /// Work that a removal may lose.
    pub(super) loss: Loss,
}

/// Removes the worktree of a task with its branch and its records in the repository, and loses no more than `loss`
/// allows. Blocking.
pub fn remove(root: &Root, board: &BoardName, task: &Task, runs: &[Run], loss: Loss) -> CollectResult {
    match worktree_of(task) {
        Some((path, worktree)) => {
            collect(worktree, &path, runs, root, board, CollectTerms { sweep: Sweep::Remove, loss })
        }
        None => CollectResult::Absent,
    }
}

/// Examines the worktree, or removes it with its branch. Blocking.
pub(super) fn collect(
    worktree: Worktree,
    path: &Path,
    runs: &[Run],
    root: &Root,
    board: &BoardName,
    CollectTerms { sweep, loss }: CollectTerms,
) -> CollectResult {
    let task = worktree.id.clone();
    let take = || {
        job::require_answer(&worktree.repository).map_err(removal_checks::stuck)?;
        // A missing directory may have left its branch.
        let meta = match removal_checks::directory(path) {
            Ok(meta) => Some(meta),
            Err(CollectResult::Absent) => None,
            Err(result) => return Err(result),
        };
        let here = path.display().to_string();
        let Some(run) = runs.iter().rev().find(|run| run.workspace_path.as_deref() == Some(here.as_str()))
        else {
            return Err(match meta {
                Some(_) => CollectResult::Foreign("no run of its task worked there".to_owned()),
                None => CollectResult::Absent,
            });
        };
        // The owner must match the run that worked there: another user may have replaced the directory.
        let expected = run.worker_uid.unwrap_or_else(removal_checks::own_uid);
        if let Some(meta) = meta.as_ref().filter(|meta| meta.uid() != expected) {
            return Err(CollectResult::Foreign(format!(
                "it belongs to uid {}, and its worker was uid {expected}",
                meta.uid()
            )));
        }
        let owner = match directory::owner_of(&worktree.repository) {
            Ok(owner) => owner,
            Err(_) if !worktree.repository.exists() => return Err(CollectResult::Absent),
            Err(e) => return Err(CollectResult::Stuck(base::failure::with_causes(&e))),
        };
        if owner.uid != expected {
            return Err(CollectResult::Foreign(format!("its repository belongs to uid {} now", owner.uid)));
        }
        let leases = root.leases();
        let _lease = meta
            .as_ref()
            .map(|meta| removal_checks::lease(&leases, path, meta, board.as_str()))
            .transpose()?;
        let identity = removal_checks::identity(owner.uid);
        let size = match meta {
            Some(_) => removal_checks::measure(identity, &worktree.directory(), &worktree.id)?,
            None => Size::default(),
        };
        let write = vec![worktree.repository.clone()];
        let job = match sweep {
            Sweep::Look => Job::JudgeWorktree { worktree, loss },
            Sweep::Remove => Job::RemoveWorktree { worktree, loss },
        };
        job::work(identity, job::system_reads(), write, job)
            .map_err(|failure| removal_checks::stuck(with_way_out(failure, board, &task)))?;
        Ok(CollectResult::Gone(size))
    };
    take().unwrap_or_else(|result| result)
}

/// Adds the command that discards the work to the refusal of a worktree that holds work.
fn with_way_out(failure: JobFailure, board: &BoardName, task: &Name) -> JobFailure {
    let Cause::Workspace(code) = failure.cause else { return failure };
    if code.origin() != Origin::Work {
        return failure;
    }
    let board = if *board == BoardName::default() { String::new() } else { format!("--board {board} ") };
    let give_up = format!(
        "to discard the work with its task: supervisor {board}archive --rm {} --discard-work",
        task.as_str()
    );
    let hint = failure.hint.map_or_else(|| give_up.clone(), |hint| format!("{hint}; {give_up}"));
    JobFailure { hint: Some(hint), ..failure }
}
