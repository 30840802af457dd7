//! Imports the rows that belong to tasks: runs, links, comments, events, files, subscriptions.

use std::collections::BTreeMap;

use super::convert::{ImportedTasks, Notes, moment, moment_or, object, owner, profile};
use super::insert;
use crate::model::cell::Cell;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{AttachmentId, TaskId};
use crate::model::note::NewAttachment;
use crate::model::outcome::Outcome;
use crate::model::run::RunStatus;
use crate::store::convert::StoredTenant;
use crate::store::tx::Tx;
use crate::transfer::cells::{key, number, text, word};
use crate::transfer::peer::PeerRow;

/// Row to be imported.
pub(super) struct Incoming<'a> {
    pub(super) tx: &'a Tx<'a>,
    pub(super) row: &'a PeerRow,
    pub(super) known: &'a ImportedTasks,
    pub(super) now: Timestamp,
    pub(super) notes: &'a mut Notes,
}

impl Incoming<'_> {
    /// Returns the imported task that the row belongs to.
    fn owner(&self, column: &str) -> Option<TaskId> {
        owner(self.row, column, self.known)
    }

    /// Leaves the row out, for a reason.
    fn omitted(&mut self, why: &str) -> bool {
        self.notes.omitted(self.row, why);
        false
    }

    /// Returns a time, else the time of the import.
    fn time(&mut self, column: &str) -> Cell {
        moment_or(self.row, column, self.now, self.notes).into()
    }

    fn tenant(&self, task: &TaskId) -> Cell {
        StoredTenant(self.known.tenant(task)).into()
    }

    /// Inserts the row into a table.
    fn put(&self, table: &str, cells: Vec<(&str, Cell)>) -> Result<bool, Error> {
        insert(self.tx, table, cells).map(|()| true)
    }
}

/// Returns the time limit of a task's runs, or of a run.
pub(super) fn runtime(row: &PeerRow, notes: &mut Notes) -> Option<i64> {
    let seconds = number(row, "max_runtime_seconds")?;
    let limit =
        Some(seconds).filter(|seconds| *seconds > 0).and_then(|seconds| seconds.checked_mul(1_000_000));
    if limit.is_none() {
        notes.changed(row, "runtime limits are not positive numbers of seconds: their tasks use the default");
    }
    limit
}

/// Stores the last heartbeat of a task with its newest run, unless that has a later one.
pub(super) fn heartbeat(tx: &Tx<'_>, task: &TaskId, row: &PeerRow, notes: &mut Notes) -> Result<(), Error> {
    let Some(at) = moment(row, "last_heartbeat_at") else { return Ok(()) };
    if !tx.keep_heartbeat(task, at)? {
        notes.omitted(row, "tasks have a heartbeat and no run that it could belong to");
    }
    Ok(())
}

/// Returns the outcome of a run in this program's words.
fn outcome(row: &PeerRow, notes: &mut Notes) -> (Outcome, Option<String>) {
    let stored_outcome = word(row, "outcome").or_else(|| word(row, "status")).unwrap_or_default();
    let outcome = match stored_outcome.as_str() {
        "completed" | "done" => Outcome::Completed,
        "blocked" => Outcome::Blocked,
        "crashed" | "failed" => Outcome::Crashed,
        "timed_out" => Outcome::TimedOut,
        "spawn_failed" => Outcome::SpawnFailed,
        "rate_limited" => Outcome::RateLimited,
        "reclaimed" | "released" => Outcome::Reclaimed,
        "cancelled" | "archived" => Outcome::Cancelled,
        _ => {
            notes.changed(
                row,
                "runs ended with an unknown outcome: they are lost, with that outcome as the error",
            );
            return (Outcome::Lost, Some(stored_outcome));
        }
    };
    (outcome, None)
}

pub(super) fn run(mut at: Incoming<'_>) -> Result<bool, Error> {
    let row = at.row;
    let (Some(id), Some(task)) = (key(row, "id"), at.owner("task_id")) else {
        return Ok(at.omitted("runs belong to no task that was taken, or have no key"));
    };
    let (outcome, unknown) = if moment(row, "ended_at").is_some() {
        outcome(row, at.notes)
    } else {
        at.notes
            .changed(row, "runs were open: they are taken back, and their tasks wait to be started again");
        (Outcome::Reclaimed, None)
    };
    let started = at.time("started_at");
    let cells = vec![
        ("id", id.into()),
        ("task_id", (&task).into()),
        ("tenant", at.tenant(&task)),
        ("profile", profile(row, "profile", at.notes).into()),
        ("step_key", word(row, "step_key").into()),
        ("status", RunStatus::from(outcome).as_str().into()),
        ("outcome", outcome.into()),
        ("holder", "hand".into()),
        ("summary", text(row, "summary").into()),
        ("error", text(row, "error").or(unknown).into()),
        ("metadata", object(row, "metadata", at.notes).into()),
        ("started_at", started),
        ("ended_at", moment(row, "ended_at").unwrap_or(at.now).into()),
        ("last_heartbeat_at", moment(row, "last_heartbeat_at").into()),
        ("max_runtime_us", runtime(row, at.notes).into()),
    ];
    at.put("task_runs", cells)
}

pub(super) fn link(mut at: Incoming<'_>) -> Result<bool, Error> {
    let (Some(parent), Some(child)) = (at.owner("parent_id"), at.owner("child_id")) else {
        return Ok(at.omitted("links lead to a task that is not there"));
    };
    if at.known.tenant(&parent) != at.known.tenant(&child) {
        return Ok(at.omitted("links join tasks of different tenants"));
    }
    if at.known.is_given_up(&parent) {
        return Ok(at.omitted(
            "links lead from a task that was archived unfinished: its children would wait forever",
        ));
    }
    if at.tx.is_above(&child, &parent)? {
        return Ok(at.omitted("links close a cycle"));
    }
    if at.tx.insert_link(&parent, &child)? { Ok(true) } else { Ok(at.omitted("links occur twice")) }
}

pub(super) fn comment(mut at: Incoming<'_>) -> Result<bool, Error> {
    let row = at.row;
    let Some(task) = at.owner("task_id") else {
        return Ok(at.omitted("comments belong to no task that was taken"));
    };
    let author = word(row, "author").unwrap_or_else(|| "unknown".to_owned());
    let shown: String = author.chars().map(|c| if c.is_control() || c == '`' { '?' } else { c }).collect();
    if shown != author {
        at.notes
            .changed(row, "authors have control characters or backticks in their names: `?` stands for each");
    }
    let kind = if at.tx.has_worker(&task, &shown)? { "worker" } else { "person" };
    let cells = vec![
        ("id", key(row, "id").into()),
        ("task_id", (&task).into()),
        ("author", shown.into()),
        ("author_kind", kind.into()),
        ("body", text(row, "body").unwrap_or_default().into()),
        ("created_at", at.time("created_at")),
    ];
    at.put("task_comments", cells)
}

pub(super) fn event(mut at: Incoming<'_>) -> Result<bool, Error> {
    let row = at.row;
    let (Some(task), Some(kind)) = (at.owner("task_id"), word(row, "kind")) else {
        return Ok(at.omitted("events belong to no task that was taken"));
    };
    let cells = vec![
        ("id", key(row, "id").into()),
        ("task_id", (&task).into()),
        ("run_id", key(row, "run_id").into()),
        ("tenant", at.tenant(&task)),
        ("kind", kind.into()),
        ("payload", object(row, "payload", at.notes).into()),
        ("created_at", at.time("created_at")),
    ];
    at.put("task_events", cells)
}

pub(super) fn attachment(
    mut at: Incoming<'_>,
    files: &BTreeMap<AttachmentId, NewAttachment>,
) -> Result<bool, Error> {
    let Some(task) = at.owner("task_id") else {
        return Ok(at.omitted("attachments belong to no task that was taken"));
    };
    // The caller has already reported the missing file.
    let Some((id, file)) = key(at.row, "id").and_then(|id| files.get_key_value(&AttachmentId(id))) else {
        return Ok(false);
    };
    let cells = vec![
        ("id", (*id).into()),
        ("task_id", (&task).into()),
        ("filename", file.filename.as_str().into()),
        ("content_type", file.content_type.as_deref().into()),
        ("size", i64::try_from(file.size).unwrap_or(i64::MAX).into()),
        ("uploaded_by", file.author.as_deref().into()),
        ("sha256", file.sha256.as_str().into()),
        ("created_at", at.time("created_at")),
    ];
    at.put("task_attachments", cells)
}

pub(super) fn subscription(mut at: Incoming<'_>) -> Result<bool, Error> {
    let row = at.row;
    let (Some(task), Some(platform), Some(chat)) =
        (at.owner("task_id"), word(row, "platform"), word(row, "chat_id"))
    else {
        return Ok(at.omitted("subscriptions belong to no task that was taken"));
    };
    let (columns, cells): (Vec<&str>, Vec<Cell>) = [
        ("task_id", (&task).into()),
        ("platform", platform.into()),
        ("chat_id", chat.into()),
        ("thread_id", text(row, "thread_id").unwrap_or_default().into()),
        ("user_id", word(row, "user_id").into()),
        ("notifier_profile", word(row, "notifier_profile").into()),
        ("created_at", at.time("created_at")),
        ("last_event_id", key(row, "last_event_id").unwrap_or(0).into()),
    ]
    .into_iter()
    .unzip();
    if at.tx.insert_new_row("notify_subs", &columns, &cells)? {
        Ok(true)
    } else {
        Ok(at.omitted("subscriptions occur twice"))
    }
}
