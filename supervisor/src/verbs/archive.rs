//! `archive`: takes a task off the board; its history stays. `--rm` deletes what is archived, for good.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Detach, Digest, Extent, Sweep, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{Bulk, outcome};
use crate::api::{Audience, Call, Effect, Verb};
use crate::failure::Failure;
use crate::gc::{self, Deed, Fate, Owner, Scratch};
use crate::paths::Root;
use crate::terminal::Screen;

/// Take tasks off the board, or delete archived ones
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A worker that is still running is ended first. A task that is not done and has
open children is refused: they would wait for ever.

--rm deletes archived tasks with their runs, comments, attachments, logs and
scratch workspaces. Their events stay, and their ids are never given out again;
children that waited for them go on.

Examples:
  supervisor archive t_0123abcd t_4567cdef
  supervisor archive t_0123abcd --detach
  supervisor archive --rm t_0123abcd t_4567cdef")]
pub(crate) struct Archive {
    /// The tasks
    #[arg(value_name = "TASK", required_unless_present = "rm")]
    pub(crate) task_ids: Vec<TaskId>,
    /// Unlink open children first
    #[arg(long)]
    pub(crate) detach: bool,
    /// Delete these archived tasks for good
    #[arg(long, value_name = "TASK", num_args = 1..)]
    pub(crate) rm: Vec<TaskId>,
}

impl Verb for Archive {
    const NAME: &'static str = "archive";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Bulk;

    fn answered_within(&self) -> Duration {
        Duration::from_mins(10)
    }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        call.refuse_live_without_daemon(&self.task_ids).await?;
        let detach = if self.detach { Detach::Unlink } else { Detach::Refuse };
        let kept = remove_workspaces(&call, &self.rm).await?;
        let held = held(&call, self.rm.clone()).await?;
        let archived = self.task_ids.len();
        let ids: Vec<TaskId> = self.task_ids.into_iter().chain(self.rm).collect();
        let mut bulk = call
            .write(move |board, actor| {
                let mut at = 0;
                Bulk::each(board, ids, |board, id| {
                    at += 1;
                    if at <= archived {
                        return board.archive(id, detach, actor).map(|settled| outcome(&settled));
                    }
                    if let Some(Fate::Stuck(why)) = kept.get(id) {
                        return Err(kernel::Error::Conflict {
                            message: format!("the workspace of {id} cannot be removed: {why}"),
                            hint: Some("nothing was deleted; see to it and try again".to_owned()),
                        });
                    }
                    board.delete(id, actor)?;
                    let note = match kept.get(id) {
                        Some(Fate::Foreign(why)) => {
                            Some(format!("what is in the place of its workspace stays: {why}"))
                        }
                        _ => None,
                    };
                    Ok((kernel::Status::Archived, note))
                })
            })
            .await?;
        let mut deleted = Vec::new();
        for one in bulk.results.iter_mut().skip(archived).filter(|one| one.ok) {
            // It has none any more.
            one.status = None;
            deleted.push(one.id.clone());
        }
        remove_logs(&call, deleted).await;
        if !held.is_empty() {
            call.sweep_blobs(Extent::Only(held), Sweep::Remove).await?;
        }
        Ok(bulk)
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

/// What the attachments of tasks hold. Of an unknown task nothing: the deletion says so.
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

/// Removes the scratch workspaces of archived tasks that are to be deleted. Before their rows: the user of a task that
/// is gone is given to another one, which must find nothing of its own.
async fn remove_workspaces(call: &Call, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Fate>, Failure> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let wanted = ids.to_vec();
    let actor = call.actor.clone();
    let (tasks, needed) = call
        .read(move |view| {
            // Whatever may not be deleted is refused where the rows are.
            let tasks: Vec<_> = wanted.iter().filter_map(|id| view.deletable(id, &actor).ok()).collect();
            Ok((tasks, view.directories_in_use()?))
        })
        .await?;
    let (service, board) = (Arc::clone(&call.service), call.board.name().clone());
    let collected = tokio::task::spawn_blocking(move || {
        let root: &Root = service.root();
        let needed: BTreeSet<PathBuf> = needed.into_iter().map(PathBuf::from).collect();
        let scratch = tasks.into_iter().filter(|task| task.workspace == "scratch");
        scratch
            .map(|task| {
                let owner = Owner::of(task.worker_uid);
                let scratch = Scratch { root, board: &board, task: &task.id, owner, needed: &needed };
                let fate = scratch.collect(Deed::Remove);
                (task.id, fate)
            })
            .collect()
    });
    collected.await.map_err(|e| Failure::failed(format!("the workspaces were not removed: {e}")))
}

/// Removes the logs of tasks that are gone. What fails here is found by `gc` later.
async fn remove_logs(call: &Call, ids: Vec<TaskId>) {
    if ids.is_empty() {
        return;
    }
    let (service, board) = (Arc::clone(&call.service), call.board.name().clone());
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
