//! Changes a task through the API: the fields of `edit`, the assignee and the status, in one transaction.

use kernel::{
    Actor, BlockKind, Blocking, Board, CommitMode, Destination, Detach, Handoff, Pool, Profile, Status, Task,
    TaskId, Tenant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::edit::Edit;
use super::edit::Edited;
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, not_for_members, verb};
use base::failure::Failure;
use base::terminal::Screen;
use base::time::duration::WrittenDuration;

kernel::task_request! { patch
/// Change a task. Absent fields stay as they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Patch {
    /// The task.
    pub task_id: Option<TaskId>,
    /// `done`, `blocked`, `ready`, `todo`, `triage` or `archived`.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The profile; an empty text or null removes it.
    #[serde(deserialize_with = "nobody", skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// The result: of the work, with `done`; else of a task that is done.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Result: with `done`; else of the last completed run.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Facts for machines: with `done`; else of the last completed run.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Value>,
    /// With `blocked`, or with `ready` or `todo` of a task that is blocked or scheduled: why.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The task in one line.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The body.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Priority: tasks with a higher number start first.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The tenant.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// The command that verifies the work, run with `sh -c`; an empty text for none.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Block the task after this many failed checks in a row.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub max_checks: Option<u32>,
    /// Handling of the changes that a run in a worktree leaves uncommitted: `auto`, `require` or `no`.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitMode>,
    /// Policy of its workers.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Workspace of its workers.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Skills of its workers.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// The pools of which each of its runs takes a place; an empty list for none.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub pools: Option<Vec<Pool>>,
    @all;
}
}

/// Reads a field that is present. Refuses null, which would change nothing.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads a profile or null, which removes the assignee.
pub(super) fn nobody<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer).map(|profile| Some(profile.unwrap_or_default()))
}

impl Patch {
    /// Moves the fields of `edit` out of the request. Fields of a handoff stay if the patch completes the task.
    fn edit(&mut self) -> Edit {
        let handoff = self.status == Some(Status::Done);
        let edit = kernel::taken_fields! { edit self => Edit };
        Edit {
            task_id: None,
            title: self.title.take(),
            body: self.body.take(),
            body_file: None,
            priority: self.priority.take(),
            result: self.result.take_if(|_| !handoff),
            summary: self.summary.take_if(|_| !handoff),
            metadata: self.metadata.take_if(|_| !handoff),
            tenant: self.tenant.take(),
            policy: self.policy.take(),
            workspace: self.workspace.take(),
            skills: self.skills.take(),
            check: self.check.take(),
            max_checks: self.max_checks.take(),
            commit: self.commit.take(),
            clear_pools: self.pools.is_some(),
            pools: self.pools.take().unwrap_or_default(),
            removed_pools: Vec::new(),
            ..edit
        }
    }
}

/// Returns the assignee of a task.
#[derive(Clone, Debug)]
struct PatchedAssignee(Option<Profile>);

/// A checked change, which can be applied to any task.
#[derive(Clone, Debug)]
pub(super) struct PatchPlan {
    edit: Option<kernel::Edit>,
    assignee: Option<PatchedAssignee>,
    status: Option<Status>,
    reason: Option<String>,
    handoff: Handoff,
    warnings: Vec<String>,
}

impl Patch {
    /// Checks the request for contradictions and the names in it for existence.
    pub(super) async fn plan(mut self, call: &Call) -> Result<PatchPlan, Failure> {
        let edit = self.edit();
        let warnings = edit.warnings(call);
        if edit.is_empty() && self.status.is_none() && self.assignee.is_none() {
            return Err(Failure::usage(if self.reason.is_some() {
                "a reason needs a status"
            } else {
                "nothing to change is given"
            })
            .hint("name what to change, such as {\"title\": \"…\"} or {\"status\": \"done\"}"));
        }
        if self.reason.is_some()
            && !matches!(self.status, Some(Status::Blocked | Status::Ready | Status::Todo))
        {
            return Err(Failure::usage("a reason is kept only with the status blocked, ready or todo")
                .hint("add a comment instead: POST /api/v1/tasks/{id}/comments"));
        }
        let edit = if edit.is_empty() { None } else { Some(edit.change(call).await?) };
        let assignee = match self.assignee.as_deref() {
            None => None,
            Some("") => Some(PatchedAssignee(None)),
            Some(name) => Some(PatchedAssignee(parse::profile_or_nobody(name)?)),
        };
        if let Some(status @ (Status::Scheduled | Status::Running | Status::Review)) = self.status {
            return Err(Failure::usage(format!("a task cannot be moved to `{status}` this way"))
                .hint("status is one of done, blocked, ready, todo, triage, archived"));
        }
        let handoff = Handoff {
            result: self.result,
            summary: self.summary,
            metadata: self.metadata,
            artifacts: Vec::new(),
        };
        Ok(PatchPlan { edit, assignee, status: self.status, reason: self.reason, handoff, warnings })
    }
}

impl PatchPlan {
    /// Refuses to change the status of tasks with a live worker if there is no daemon to end it.
    pub(super) async fn require_daemon(&self, call: &Call, ids: &[TaskId]) -> Result<(), Failure> {
        if self.status.is_some() { call.refuse_live_without_daemon(ids).await } else { Ok(()) }
    }

    /// Makes the change.
    pub(super) fn apply(
        &self,
        board: &mut Board<'_>,
        id: &TaskId,
        actor: &Actor,
    ) -> Result<Task, kernel::Error> {
        if let Some(edit) = &self.edit {
            board.edit(id, edit, actor)?;
        }
        if let Some(PatchedAssignee(assignee)) = &self.assignee {
            board.assign(id, assignee.clone(), actor)?;
        }
        match self.status {
            Some(Status::Done) => {
                board.complete(id, self.handoff.clone(), None, actor)?;
            }
            Some(Status::Blocked) => {
                let reason = self.reason.clone();
                board.block(
                    id,
                    Blocking { kind: BlockKind::NeedsInput, reason, ..Blocking::default() },
                    None,
                    actor,
                )?;
            }
            Some(Status::Triage) => {
                board.move_task(id, Destination::Triage, actor)?;
            }
            Some(asked @ (Status::Ready | Status::Todo)) => {
                queue(board, id, asked, self.reason.as_deref(), actor)?;
            }
            Some(Status::Archived) => {
                board.archive(id, Detach::Refuse, actor)?;
            }
            Some(Status::Scheduled | Status::Running | Status::Review) | None => {}
        }
        board.expect_task(id)
    }
}

impl Verb for Patch {
    verb! { "patch": Operator, Write, members => Edited }

    fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// Checks fields that the users of tenants may also set by verbs of their own: `edit`, `assign`, `block`, `promote`, `unblock`,
    /// `archive`.
    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        if self.status == Some(Status::Done) {
            return Err(not_for_members("the status `done` of a task"));
        }
        self.clone().edit().confine(tenant)
    }

    async fn run(mut self, call: Call) -> Result<Edited, Failure> {
        let id = crate::views::parse::named(self.task_id.take())?;
        let plan = self.plan(&call).await?;
        plan.require_daemon(&call, std::slice::from_ref(&id)).await?;
        call.write(move |board, actor| {
            let task = plan.apply(board, &id, actor)?;
            Ok(Edited { task, warnings: plan.warnings })
        })
        .await
    }
}

impl Command for Patch {
    fn show(reply: &Edited, screen: &mut Screen) {
        screen.line(format!("{} ({})", reply.task.id, reply.task.status));
    }

    fn warnings(reply: &Edited) -> &[String] {
        &reply.warnings
    }
}

/// Moves a task into the queue. Its parents decide between `ready` and `todo`; the move is refused if their choice is
/// not the requested status.
fn queue(
    board: &mut Board<'_>,
    id: &TaskId,
    asked: Status,
    reason: Option<&str>,
    actor: &Actor,
) -> Result<(), kernel::Error> {
    let refuse =
        |message: String, hint: &str| kernel::Error::Conflict { message, hint: Some(hint.to_owned()) };
    let before = board.expect_task(id)?.status;
    if before == asked {
        return Err(refuse(format!("{id} is already {before}"), "nothing was changed"));
    }
    let now = match before {
        Status::Blocked | Status::Scheduled => board.unblock(id, reason, actor)?.status,
        _ if reason.is_some() => {
            return Err(refuse(
                format!(
                    "{id} is {before}, and a reason is kept only when a blocked or scheduled task continues"
                ),
                "leave the reason out, and say it in a comment",
            ));
        }
        Status::Triage
        | Status::Todo
        | Status::Ready
        | Status::Running
        | Status::Review
        | Status::Done
        | Status::Archived => board.move_task(id, Destination::Queue, actor)?.task.status,
    };
    if now == asked || now == Status::Running {
        return Ok(());
    }
    Err(refuse(
        format!("{id} cannot be {asked}: it would be {now}"),
        "only open parents make a task todo, and only a start time makes it scheduled",
    ))
}
