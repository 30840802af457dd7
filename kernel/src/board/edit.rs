//! Changes of what a task says and who it is for.

use serde_json::{Value, json};

use super::Board;
use crate::actor::Actor;
use crate::authority;
use crate::error::Error;
use crate::id::{Profile, TaskId};
use crate::limits;
use crate::outcome::Approval;
use crate::status::Status;
use crate::store::runs;
use crate::store::tasks::Field;
use crate::task::Task;

/// What to change; what is none stays.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// The title.
    pub title: Option<String>,
    /// The body.
    pub body: Option<String>,
    /// The priority.
    pub priority: Option<i64>,
    /// The failures in a row that block it.
    pub max_retries: Option<u32>,
    /// The result of a task that is done.
    pub result: Option<String>,
    /// The summary of its last completed run.
    pub summary: Option<String>,
    /// The metadata of its last completed run.
    pub metadata: Option<Value>,
}

impl Board<'_> {
    /// Gives a task to a profile, or to nobody. A running task is taken back first.
    #[expect(clippy::needless_pass_by_value, reason = "a caller builds it for this call only")]
    pub fn assign(&mut self, id: &TaskId, assignee: Option<Profile>, actor: &Actor) -> Result<Task, Error> {
        authority::person(actor, "assign a task")?;
        let task = self.admit(id, actor)?;
        if task.assignee == assignee {
            return Ok(task);
        }
        if let (Some(approver), Some(name)) = (&task.approver, &assignee)
            && approver == name.as_str()
        {
            return Err(Error::conflict(
                format!("{name} is the approver of {id}, and nobody approves their own work"),
                "assign it to somebody else",
            ));
        }
        let run = task.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        if let Some(run) = run.filter(|run| run.stop_reason.is_none()) {
            return Err(Error::conflict(
                format!(
                    "{id} is running as {} (run {})",
                    run.profile.map_or_else(|| "nobody".to_owned(), String::from),
                    run.id
                ),
                format!("take it back first: `supervisor reassign {id} <profile> --reclaim`"),
            ));
        }
        self.set(id, &Field::Assignee(assignee.as_ref()))?;
        self.set(id, &Field::Nonspawnable(None))?;
        self.set(id, &Field::Failures(0))?;
        let payload = json!({ "assignee": assignee, "from": task.assignee });
        self.tell(&task, None, "assigned", Some(payload), &actor.label())?;
        self.expect_task(id)
    }

    /// Changes what a task says.
    pub fn edit(&mut self, id: &TaskId, edit: &Edit, actor: &Actor) -> Result<Task, Error> {
        authority::person(actor, "edit a task")?;
        let task = self.admit(id, actor)?;
        let mut fields: Vec<&str> = Vec::new();
        if (edit.title.is_some() || edit.body.is_some())
            && task.approval == Some(Approval::Granted)
            && !matches!(task.status, Status::Done | Status::Archived)
        {
            return Err(Error::conflict(
                format!("{id} was approved as it is"),
                "create a new task that asks for another approval",
            ));
        }
        if let Some(title) = &edit.title {
            limits::title(title)?;
            self.set(id, &Field::Title(title))?;
            fields.push("title");
        }
        if let Some(body) = &edit.body {
            limits::bytes("body", body, limits::BODY)?;
            self.set(id, &Field::Body(Some(body)))?;
            fields.push("body");
        }
        if let Some(limit) = edit.max_retries {
            self.set(id, &Field::MaxRetries(Some(limit)))?;
            fields.push("max_retries");
        }
        if let Some(result) = &edit.result {
            limits::bytes("result", result, limits::SUMMARY)?;
            self.set(id, &Field::Result(Some(result)))?;
            fields.push("result");
        }
        if edit.summary.is_some() || edit.metadata.is_some() {
            limits::maybe("summary", edit.summary.as_deref(), limits::SUMMARY)?;
            limits::metadata(edit.metadata.as_ref())?;
            let run = self.last_completed_run(id)?.ok_or_else(|| {
                Error::conflict(format!("{id} has no completed run"), "complete it with a summary instead")
            })?;
            runs::edit_handoff(self.conn(), run.id, edit.summary.as_deref(), edit.metadata.as_ref())?;
            fields.push("summary");
        }
        if !fields.is_empty() {
            let payload =
                json!({ "fields": fields, "result_len": edit.result.as_ref().map_or(0, String::len) });
            self.tell(&task, None, "edited", Some(payload), &actor.label())?;
        }
        if let Some(priority) = edit.priority.filter(|priority| *priority != task.priority) {
            self.set(id, &Field::Priority(priority))?;
            self.tell(&task, None, "reprioritized", Some(json!({ "priority": priority })), &actor.label())?;
        }
        self.expect_task(id)
    }
}
