//! Out of sight, and out of existence.

use super::{Board, Settled};
use crate::actor::Actor;
use crate::authority;
use crate::error::Error;
use crate::id::TaskId;
use crate::status::Status;
use crate::store::{links, tasks};
use crate::verdict::Verdict;
use crate::words::words;

words! {
    /// What happens to the children of a task that is archived without being done.
    "detach"
    Detach {
        /// Open children refuse it.
        Refuse => "refuse",
        /// Open children no longer wait for it.
        Unlink => "unlink",
    }
}

impl Board<'_> {
    /// Archives a task; its open run is ended first.
    pub fn archive(&mut self, id: &TaskId, detach: Detach, actor: &Actor) -> Result<Settled, Error> {
        authority::person(actor, "archive a task")?;
        let task = self.admit(id, actor)?;
        let children = links::open_children(self.conn(), id)?;
        if !task.is_done() && !children.is_empty() {
            match detach {
                Detach::Refuse => {
                    let list: Vec<String> = children.iter().take(5).map(ToString::to_string).collect();
                    return Err(Error::conflict(
                        format!(
                            "{id} is not done and {} tasks wait for it: {}",
                            children.len(),
                            list.join(", ")
                        ),
                        "archive with `--detach` to let them go on without it, or complete it",
                    ));
                }
                Detach::Unlink => {}
            }
        }
        let settled = self.decide(id, Verdict::Archive { handoff: None }, None, actor)?;
        if settled.task.status == Status::Archived && !settled.task.is_done() {
            self.release_children(id, &actor.label())?;
        }
        Ok(settled)
    }

    /// Deletes an archived task with its runs, links, comments and attachments; its events stay. Returns the stored
    /// paths of its attachments, for the caller to remove.
    pub fn delete(&mut self, id: &TaskId, actor: &Actor) -> Result<Vec<String>, Error> {
        authority::person(actor, "delete a task")?;
        let task = self.admit(id, actor)?;
        if task.status != Status::Archived {
            return Err(Error::conflict(
                format!("{id} is {}: only archived tasks are deleted", task.status),
                format!("archive it first: `supervisor archive {id}`"),
            ));
        }
        let paths = self.attachments(id)?.into_iter().map(|file| file.stored_path).collect();
        self.tell(&task, None, "deleted", None, &actor.label())?;
        if tasks::delete(self.conn(), id)? { Ok(paths) } else { Err(Error::missing("task", id)) }
    }
}
