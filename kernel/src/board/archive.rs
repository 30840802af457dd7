//! Archives tasks, and deletes archived tasks.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Board, Settled};
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::counted::Counted;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{Digest, TaskId};
use crate::model::missing::Missing;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::verdict::Verdict;
use crate::model::words::words;
use crate::rules::authority;

words! {
    /// Treatment of the children of a task that is archived without being done.
    "detach"
    Detach {
        /// The archive is refused while children wait.
        Refuse => "refuse",
        /// The waiting children are unlinked.
        Unlink => "unlink",
    }
}

impl Board<'_> {
    /// Archives a task. A task with a live run is archived when the run has ended.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the task is not done and has open children, unless they are to be unlinked.
    pub fn archive(&mut self, id: &TaskId, detach: Detach, actor: &Actor) -> Result<Settled, Error> {
        let task = self.for_person(id, actor, "archive a task")?;
        let children = self.tx.open_children(id)?;
        if !task.is_done() && !children.is_empty() {
            match detach {
                Detach::Refuse => {
                    let list: Vec<String> = children.iter().take(5).map(ToString::to_string).collect();
                    return Err(Error::conflict(
                        format!(
                            "{id} is not done and is waited for by {}: {}",
                            Counted(children.len(), "task"),
                            list.join(", ")
                        ),
                        "archive with `--detach` to let them go on without it, or complete it",
                    ));
                }
                Detach::Unlink => {}
            }
        }
        let settled = self.decide(id, Verdict::Archive { handoff: None }, None, actor)?;
        // A task with a live run is not archived yet; the end of the run releases its children.
        if settled.task.status == Status::Archived && !settled.task.is_done() {
            self.release_children(id, &actor.label())?;
        }
        Ok(settled)
    }

    /// Deletes an archived task with its runs, links, comments and attachments. Its events stay, and its id is never used
    /// again. Its children no longer wait for it. Returns the digests of its attachments; the caller removes the files that
    /// no other attachment uses.
    pub fn delete(&mut self, id: &TaskId, actor: &Actor) -> Result<BTreeSet<Digest>, Error> {
        authority::person(actor, "delete a task")?;
        let task = self.deletable(id, actor)?;
        let files = self.attachments(id)?;
        let (parents, children) = (self.parents(id)?, self.children(id)?);
        let payload = json!({
            "title": task.title,
            "assignee": task.assignee,
            "priority": task.priority,
            "created_by": task.created_by,
            "created_at": task.created_at,
            "completed_at": task.completed_at,
            "workspace": task.workspace,
            "workspace_path": task.workspace_path,
            "branch_name": task.branch_name,
            "parents": parents,
            "children": children,
            "runs": self.runs(id)?.len(),
            "comments": self.tx.count_comments(id)?,
            "attachments": files.iter().map(|file| file.filename.as_str()).collect::<Vec<_>>(),
        });
        let by = actor.label();
        self.append(&task, None, EventKind::Deleted, payload, &by)?;
        if !self.tx.delete_task(id)? {
            return Err(Error::missing(Missing::Task, id));
        }
        for child in children {
            self.reevaluate(&child, &by)?;
        }
        Ok(files.into_iter().map(|file| file.sha256).collect())
    }
}

impl View<'_> {
    /// Returns a task that may be deleted.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a task that is not archived, because it may have a worker.
    pub fn deletable(&self, id: &TaskId, actor: &Actor) -> Result<Task, Error> {
        let task = self.task_for(id, actor)?;
        if task.status == Status::Archived {
            return Ok(task);
        }
        Err(Error::conflict(
            format!("{id} is {}: only archived tasks are deleted", task.status),
            format!("archive it first: `supervisor archive {id}`"),
        ))
    }
}
