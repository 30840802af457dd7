//! `archive`: removes tasks from the board but keeps their history. `--rm` deletes archived tasks for good.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Detach, Digest, Sweep, SweepScope, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workspace::Loss;

use super::bulk::{Bulk, TaskResult, outcome};
use super::selection::{FLAGS, Matching, on_tasks};
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::paths::Root;
use base::terminal::Screen;
use daemon::gc::{self, CollectResult, Owner, Scratch};

/// Flags that select tasks without a list of ids as arguments.
const OTHERWISE: [&str; 7] = ["rm", "status", "assignee", "tenant", "search", "since", "failed"];

/// Archive tasks, or delete archived ones
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A running worker is ended first. A task that is not done and has open children is
refused: they would wait forever.

The scratch workspace is removed with the task; files that its runs handed over stay.

--rm deletes archived tasks with their runs, comments, attachments, logs and
worktrees. It refuses a task whose worktree has changes, or commits that exist
nowhere else, unless --discard-work is given. Events stay, and ids are never
reused. Children no longer wait for a deleted task.

Examples:
  supervisor archive t_0123abcd t_4567cdef
  supervisor archive --status done --yes
  supervisor archive t_0123abcd --detach
  supervisor archive --rm t_0123abcd t_4567cdef
  supervisor archive t_0123abcd --rm
  supervisor archive --rm t_0123abcd --discard-work")]
pub struct Archive {
    /// The tasks
    #[arg(value_name = "TASK", required_unless_present_any = OTHERWISE, conflicts_with_all = FLAGS)]
    pub task_ids: Vec<TaskId>,
    /// Unlink open children first
    #[arg(long)]
    pub detach: bool,
    /// Delete these archived tasks for good
    #[arg(long, value_name = "TASK", num_args = 0..)]
    pub rm: Option<Vec<TaskId>>,
    /// With --rm: discard changes and commits that exist only in a task's worktree
    #[arg(long, requires = "rm")]
    pub discard_work: bool,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: Matching,
}

on_tasks!(Archive);

impl Verb for Archive {
    verb! { "archive": Operator, Write, members => Bulk }

    fn answered_within(&self) -> Duration {
        Duration::from_mins(10)
    }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        call.refuse_live_without_daemon(&self.task_ids).await?;
        let detach = if self.detach { Detach::Unlink } else { Detach::Refuse };
        let rm = self.rm.unwrap_or_default();
        if rm.is_empty() {
            let ids = self.task_ids;
            let bulk = call.write(move |board, actor| archive(board, actor, ids, detach)).await?;
            return clear(&call, bulk).await;
        }
        // The tasks beside `--rm` are archived first, in a transaction of their own: this ends their workers, so that the
        // tasks to delete have none.
        let archived = match self.task_ids {
            ids if ids.is_empty() => Vec::new(),
            ids => {
                let (board, actor) = (Arc::clone(call.board()?), call.actor.clone());
                let bulk = blocking("nothing was archived", move || {
                    Ok::<_, Failure>(board.writer()?.call(move |board| archive(board, &actor, ids, detach))?)
                })
                .await??;
                clear(&call, bulk).await?.results
            }
        };
        let loss = if self.discard_work { Loss::Accept } else { Loss::Refuse };
        let kept = remove_workspaces(&call, &rm, loss).await?;
        let held = held(&call, rm.clone()).await?;
        let (count, ids) = (archived.len(), rm);
        let mut bulk = call
            .write(move |board, actor| {
                let deleted = Bulk::each(board, ids, |board, id| {
                    if let Some(CollectResult::Stuck(why)) = kept.get(id) {
                        return Err(kernel::Error::Conflict {
                            message: format!("the workspace of {id} cannot be removed: {why}"),
                            hint: Some("nothing was deleted; fix that and try again".to_owned()),
                        });
                    }
                    board.delete(id, actor)?;
                    let note = match kept.get(id) {
                        Some(CollectResult::Foreign(why)) => {
                            Some(format!("what is in place of its workspace is kept: {why}"))
                        }
                        _ => None,
                    };
                    Ok((kernel::Status::Archived, note))
                })?;
                Ok(Bulk { results: archived.into_iter().chain(deleted.results).collect() })
            })
            .await?;
        let archived = count;
        let mut deleted = Vec::new();
        for one in bulk.results.iter_mut().skip(archived).filter(|one| one.ok) {
            // A deleted task has no status. This is also how `show` tells the deleted tasks from the archived ones.
            one.status = None;
            deleted.push(one.id.clone());
        }
        remove_logs(&call, deleted).await;
        if !held.is_empty() {
            call.sweep_blobs(SweepScope::Only(held), Sweep::Remove).await?;
        }
        Ok(bulk)
    }
}

impl Command for Archive {
    fn localize(&mut self, _here: &Invocation) -> Result<(), Failure> {
        // A `--rm` without values that follows task ids applies to these ids.
        if self.rm.as_ref().is_some_and(Vec::is_empty) {
            if self.task_ids.is_empty() {
                return Err(Failure::usage("no task to delete is named")
                    .hint("name those to delete: supervisor archive --rm <task>"));
            }
            self.rm = Some(std::mem::take(&mut self.task_ids));
        }
        Ok(())
    }

    fn show(reply: &Bulk, screen: &mut Screen) {
        for one in &reply.results {
            one.show(if one.status.is_some() { "Archived" } else { "Deleted" }, screen);
        }
    }

    fn verdict(reply: &Bulk) -> u8 {
        reply.verdict()
    }
}

fn archive(
    board: &mut kernel::Board<'_>,
    actor: &kernel::Actor,
    ids: Vec<TaskId>,
    detach: Detach,
) -> Result<Bulk, kernel::Error> {
    Bulk::each(board, ids, |board, id| board.archive(id, detach, actor).map(|settled| outcome(&settled)))
}

/// Removes the scratch workspaces of newly archived tasks, and reports the workspaces that stay in the notes of the reply. A
/// workspace whose removal fails is only logged, because `gc` removes it later. A task with a live worker is not archived
/// yet; its workspace is removed at the end of its run.
async fn clear(call: &Call, mut bulk: Bulk) -> Result<Bulk, Failure> {
    let (service, board) = (Arc::clone(&call.service), Arc::clone(call.board()?));
    blocking("the workspaces were not removed", move || {
        let over = |one: &&mut TaskResult| one.ok && one.status == Some(kernel::Status::Archived);
        for one in bulk.results.iter_mut().filter(over) {
            match gc::remove_archived(service.root(), &board, &one.id) {
                Ok(CollectResult::Absent | CollectResult::Gone(_)) => {}
                Ok(CollectResult::Foreign(why) | CollectResult::Stuck(why)) => {
                    one.note = Some(format!("its workspace is kept: {why}"));
                }
                Err(failure) => tracing::warn!(task = %one.id, error = %failure, "workspace_not_removed"),
            }
        }
        bulk
    })
    .await
}

/// Returns the digests of the attachments of tasks. An unknown task has none; the deletion refuses it.
async fn held(call: &Call, tasks: Vec<TaskId>) -> Result<BTreeSet<Digest>, Failure> {
    if tasks.is_empty() {
        return Ok(BTreeSet::new());
    }
    call.read(move |view| {
        let mut held = BTreeSet::new();
        for task in &tasks {
            held.extend(view.attachments(task)?.into_iter().map(|file| file.sha256));
        }
        Ok(held)
    })
    .await
}

/// Removes the scratch workspaces and worktrees of archived tasks before their rows are deleted. The order matters: the
/// Unix user of a deleted task is given to another task, which must not find files of the former one.
async fn remove_workspaces(
    call: &Call,
    ids: &[TaskId],
    loss: Loss,
) -> Result<BTreeMap<TaskId, CollectResult>, Failure> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let wanted = ids.to_vec();
    let actor = call.actor.clone();
    let (tasks, needed) = call
        .read(move |view| {
            // Tasks that may not be deleted are skipped here; the write that deletes the rows refuses them.
            let mut tasks = Vec::new();
            for task in wanted.iter().filter_map(|id| view.deletable(id, &actor).ok()) {
                let runs = view.runs(&task.id)?;
                tasks.push((task, runs));
            }
            Ok((tasks, view.directories_in_use()?))
        })
        .await?;
    let (service, board) = (Arc::clone(&call.service), call.board()?.name().clone());
    blocking("the workspaces were not removed", move || {
        let root: &Root = service.root();
        let needed: BTreeSet<PathBuf> = needed.into_iter().map(PathBuf::from).collect();
        tasks
            .into_iter()
            .map(|(task, runs)| {
                let kept = gc::sessions_of_task(root, &board, &task.id, Sweep::Remove);
                if matches!(kept, CollectResult::Foreign(_) | CollectResult::Stuck(_)) {
                    return (task.id, kept);
                }
                if !gc::has_scratch(&task) {
                    let fate = gc::remove_worktree(root, &board, &task, &runs, loss);
                    return (task.id, fate);
                }
                let owner = Owner::of_workspace(task.worker_uid);
                let scratch = Scratch { root, board: &board, task: &task.id, owner, needed: &needed };
                let fate = scratch.collect(Sweep::Remove);
                (task.id, fate)
            })
            .collect()
    })
    .await
}

/// Removes the logs of deleted tasks. A failure is only logged, because `gc` removes the rest later.
async fn remove_logs(call: &Call, ids: Vec<TaskId>) {
    if ids.is_empty() {
        return;
    }
    let Ok(board) = call.board().map(|board| board.name().clone()) else { return };
    let service = Arc::clone(&call.service);
    let removed = tokio::task::spawn_blocking(move || {
        for id in ids {
            if let Err(failure) = gc::remove_logs(service.root(), &board, &id) {
                tracing::warn!(task = %id, error = %failure, "logs_not_removed");
            }
        }
    });
    if let Err(error) = removed.await {
        tracing::warn!(%error, "logs_not_removed");
    }
}
