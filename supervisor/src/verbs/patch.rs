//! The change of a task through the API: status, assignee, or both, in one transaction.

use kernel::{
    Actor, BlockKind, Blocking, Board, Destination, Detach, Handoff, Profile, Status, Task, TaskId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::failure::Failure;
use crate::terminal::Screen;

/// A change of a task. What is absent stays as it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Patch {
    /// The task.
    pub(crate) task_id: Option<TaskId>,
    /// `done`, `blocked`, `ready`, `todo`, `triage` or `archived`.
    pub(crate) status: Option<String>,
    /// The profile; an empty text for nobody.
    pub(crate) assignee: Option<String>,
    /// With `done`: the result.
    pub(crate) result: Option<String>,
    /// With `done`: what was done.
    pub(crate) summary: Option<String>,
    /// With `done`: facts for machines.
    pub(crate) metadata: Option<serde_json::Value>,
    /// With `blocked` or `ready`: why.
    pub(crate) reason: Option<String>,
}

impl Verb for Patch {
    const NAME: &'static str = "patch";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Task;

    async fn run(self, call: Call) -> Result<Task, Failure> {
        let id = super::texts::named(self.task_id)?;
        let assignee = match self.assignee.as_deref() {
            None => None,
            Some("") => Some(None),
            Some(name) => Some(Some(name.parse::<Profile>().map_err(|e| Failure::usage(e.to_string()))?)),
        };
        if let Some(status) = &self.status
            && !["done", "blocked", "ready", "todo", "triage", "archived"].contains(&status.as_str())
        {
            return Err(Failure::usage(format!("a task cannot be moved to `{status}` this way"))
                .hint("status is one of done, blocked, ready, todo, triage, archived"));
        }
        if matches!(
            self.status.as_deref(),
            Some("done" | "blocked" | "archived" | "triage" | "todo" | "ready")
        ) {
            call.refuse_live_without_daemon(std::slice::from_ref(&id)).await?;
        }
        call.write(move |board, actor| {
            if let Some(assignee) = assignee {
                board.assign(&id, assignee, actor)?;
            }
            match self.status.as_deref() {
                Some("done") => {
                    let handoff = Handoff {
                        result: self.result,
                        summary: self.summary,
                        metadata: self.metadata,
                        artifacts: Vec::new(),
                    };
                    board.complete(&id, handoff, None, actor)?;
                }
                Some("blocked") => {
                    let blocking =
                        Blocking { kind: BlockKind::NeedsInput, reason: self.reason, question: None };
                    board.block(&id, blocking, None, actor)?;
                }
                Some("triage") => {
                    board.move_task(&id, Destination::Triage, actor)?;
                }
                Some(asked @ ("ready" | "todo")) => queue(board, &id, asked, self.reason.as_deref(), actor)?,
                Some("archived") => {
                    board.archive(&id, Detach::Refuse, actor)?;
                }
                Some(_) | None => {}
            }
            board.task(&id)?.ok_or(kernel::Error::NotFound { what: "task", id: id.to_string() })
        })
        .await
    }

    fn show(reply: &Task, screen: &mut Screen) {
        screen.line(format!("{} ({})", reply.id, reply.status));
    }
}

/// Moves a task into the queue. Whether it is `ready` or `todo` there its parents decide, so it is refused when that is
/// not what was asked for.
fn queue(
    board: &mut Board<'_>,
    id: &TaskId,
    asked: &str,
    reason: Option<&str>,
    actor: &Actor,
) -> Result<(), kernel::Error> {
    let refuse =
        |message: String, hint: &str| kernel::Error::Conflict { message, hint: Some(hint.to_owned()) };
    let before = board.expect_task(id)?.status;
    if before.as_str() == asked {
        return Err(refuse(format!("{id} is {before} already"), "nothing was changed"));
    }
    let now = match before {
        Status::Blocked | Status::Scheduled => board.unblock(id, reason, actor)?.status,
        Status::Triage
        | Status::Todo
        | Status::Ready
        | Status::Running
        | Status::Review
        | Status::Done
        | Status::Archived => board.move_task(id, Destination::Queue, actor)?.task.status,
    };
    if now.as_str() == asked || now == Status::Running {
        return Ok(());
    }
    Err(refuse(
        format!("{id} cannot be {asked}: it would be {now}"),
        "parents that are not done make it todo, nothing else does; its time makes it scheduled",
    ))
}
