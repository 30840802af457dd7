//! The rows that belong to tasks: runs, links, comments, events, files, subscriptions.

use std::collections::{BTreeMap, BTreeSet};

use super::insert;
use super::words::{Known, Notes, moment, moment_or, number, object, owner, profile, text, word};
use crate::model::cell::Cell;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{AttachmentId, TaskId};
use crate::model::note::NewAttachment;
use crate::model::outcome::Outcome;
use crate::store::tx::Tx;
use crate::transfer::peer::PeerRow;

/// The limit of a task's runs, or of a run.
pub(super) fn runtime(row: &PeerRow, notes: &mut Notes) -> Option<i64> {
    let seconds = number(row, "max_runtime_seconds")?;
    let limit =
        Some(seconds).filter(|seconds| *seconds > 0).and_then(|seconds| seconds.checked_mul(1_000_000));
    if limit.is_none() {
        notes.changed(row, "runtime limits are not positive numbers of seconds: their tasks use the default");
    }
    limit
}

/// Keeps the last sign of life of a task with its newest run, where that has none of its own.
pub(super) fn heartbeat(tx: &Tx<'_>, task: &TaskId, row: &PeerRow, notes: &mut Notes) -> Result<(), Error> {
    let Some(at) = moment(row, "last_heartbeat_at") else { return Ok(()) };
    if !tx.keep_heartbeat(task, at)? {
        notes.left(row, "tasks have a heartbeat and no run that it could belong to");
    }
    Ok(())
}

/// How a run ended, in this program's words.
fn outcome(row: &PeerRow, notes: &mut Notes) -> (&'static str, Outcome, Option<String>) {
    let said = word(row, "outcome").or_else(|| word(row, "status")).unwrap_or_default();
    let (status, outcome) = match said.as_str() {
        "completed" | "done" => ("done", Outcome::Completed),
        "blocked" => ("blocked", Outcome::Blocked),
        "crashed" | "failed" => ("crashed", Outcome::Crashed),
        "timed_out" => ("timed_out", Outcome::TimedOut),
        "spawn_failed" => ("spawn_failed", Outcome::SpawnFailed),
        "rate_limited" => ("rate_limited", Outcome::RateLimited),
        "reclaimed" | "released" => ("reclaimed", Outcome::Reclaimed),
        "cancelled" | "archived" => ("cancelled", Outcome::Cancelled),
        _ => {
            notes.changed(
                row,
                "runs ended with an unknown outcome: they are lost, with that outcome as the error",
            );
            return ("lost", Outcome::Lost, Some(said));
        }
    };
    (status, outcome, None)
}

pub(super) fn run(
    tx: &Tx<'_>,
    row: &PeerRow,
    known: &Known,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(id), Some(task)) = (number(row, "id"), owner(row, "task_id", known)) else {
        notes.left(row, "runs belong to no task that was taken");
        return Ok(false);
    };
    let (status, outcome, unknown) = if moment(row, "ended_at").is_some() {
        outcome(row, notes)
    } else {
        notes.changed(row, "runs were open: they are taken back, and their tasks wait to be started again");
        ("reclaimed", Outcome::Reclaimed, None)
    };
    let started = moment_or(row, "started_at", now, notes);
    let cells: Vec<(&str, Cell)> = vec![
        ("id", id.into()),
        ("task_id", (&task).into()),
        ("tenant", tenant(known, &task)),
        ("profile", profile(row, "profile", notes).into()),
        ("step_key", word(row, "step_key").into()),
        ("status", status.into()),
        ("outcome", outcome.into()),
        ("holder", "hand".into()),
        ("summary", text(row, "summary").into()),
        ("error", text(row, "error").or(unknown).into()),
        ("metadata", object(row, "metadata", notes).into()),
        ("started_at", started.into()),
        ("ended_at", moment(row, "ended_at").unwrap_or(now).into()),
        ("last_heartbeat_at", moment(row, "last_heartbeat_at").into()),
        ("max_runtime_us", runtime(row, notes).into()),
    ];
    insert(tx, "task_runs", cells)?;
    Ok(true)
}

fn tenant(known: &Known, task: &TaskId) -> Cell {
    known.get(task).map_or("", String::as_str).into()
}

pub(super) fn link(
    tx: &Tx<'_>,
    row: &PeerRow,
    (known, given_up): (&Known, &BTreeSet<TaskId>),
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(parent), Some(child)) = (owner(row, "parent_id", known), owner(row, "child_id", known)) else {
        notes.left(row, "links lead to a task that is not there");
        return Ok(false);
    };
    if known.get(&parent) != known.get(&child) {
        notes.left(row, "links join tasks of different tenants");
        return Ok(false);
    }
    if given_up.contains(&parent) {
        notes.left(
            row,
            "links lead from a task that was archived unfinished: its children would wait forever",
        );
        return Ok(false);
    }
    if tx.is_above(&child, &parent)? {
        notes.left(row, "links close a cycle");
        return Ok(false);
    }
    let new = tx.insert_link(&parent, &child)?;
    if !new {
        notes.left(row, "links occur twice");
    }
    Ok(new)
}

pub(super) fn comment(
    tx: &Tx<'_>,
    row: &PeerRow,
    known: &Known,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let Some(task) = owner(row, "task_id", known) else {
        notes.left(row, "comments belong to no task that was taken");
        return Ok(false);
    };
    let author = word(row, "author").unwrap_or_else(|| "unknown".to_owned());
    let shown: String = author.chars().map(|c| if c.is_control() || c == '`' { '?' } else { c }).collect();
    if shown != author {
        notes
            .changed(row, "authors have control characters or backticks in their names: `?` stands for each");
    }
    let kind = if tx.has_worker(&task, &shown)? { "worker" } else { "person" };
    let cells: Vec<(&str, Cell)> = vec![
        ("id", number(row, "id").into()),
        ("task_id", (&task).into()),
        ("author", shown.into()),
        ("author_kind", kind.into()),
        ("body", text(row, "body").unwrap_or_default().into()),
        ("created_at", moment_or(row, "created_at", now, notes).into()),
    ];
    insert(tx, "task_comments", cells)?;
    Ok(true)
}

pub(super) fn event(
    tx: &Tx<'_>,
    row: &PeerRow,
    known: &Known,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(task), Some(kind)) = (owner(row, "task_id", known), word(row, "kind")) else {
        notes.left(row, "events belong to no task that was taken");
        return Ok(false);
    };
    let cells: Vec<(&str, Cell)> = vec![
        ("id", number(row, "id").into()),
        ("task_id", (&task).into()),
        ("run_id", number(row, "run_id").into()),
        ("tenant", tenant(known, &task)),
        ("kind", kind.into()),
        ("payload", object(row, "payload", notes).into()),
        ("created_at", moment_or(row, "created_at", now, notes).into()),
    ];
    insert(tx, "task_events", cells)?;
    Ok(true)
}

pub(super) fn attachment(
    tx: &Tx<'_>,
    row: &PeerRow,
    (known, files): (&Known, &BTreeMap<AttachmentId, NewAttachment>),
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let Some(task) = owner(row, "task_id", known) else {
        notes.left(row, "attachments belong to no task that was taken");
        return Ok(false);
    };
    // The caller has already reported why there is no such file.
    let Some((id, file)) = number(row, "id").and_then(|id| files.get_key_value(&AttachmentId(id))) else {
        return Ok(false);
    };
    let cells: Vec<(&str, Cell)> = vec![
        ("id", (*id).into()),
        ("task_id", (&task).into()),
        ("filename", file.filename.as_str().into()),
        ("content_type", file.content_type.as_deref().into()),
        ("size", i64::try_from(file.size).unwrap_or(i64::MAX).into()),
        ("uploaded_by", file.author.as_deref().into()),
        ("sha256", file.sha256.as_str().into()),
        ("created_at", moment_or(row, "created_at", now, notes).into()),
    ];
    insert(tx, "task_attachments", cells)?;
    Ok(true)
}

pub(super) fn subscription(
    tx: &Tx<'_>,
    row: &PeerRow,
    known: &Known,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(task), Some(platform), Some(chat)) =
        (owner(row, "task_id", known), word(row, "platform"), word(row, "chat_id"))
    else {
        notes.left(row, "subscriptions belong to no task that was taken");
        return Ok(false);
    };
    let (columns, cells): (Vec<&str>, Vec<Cell>) = [
        ("task_id", (&task).into()),
        ("platform", platform.into()),
        ("chat_id", chat.into()),
        ("thread_id", text(row, "thread_id").unwrap_or_default().into()),
        ("user_id", word(row, "user_id").into()),
        ("notifier_profile", word(row, "notifier_profile").into()),
        ("created_at", moment_or(row, "created_at", now, notes).into()),
        ("last_event_id", number(row, "last_event_id").unwrap_or(0).into()),
    ]
    .into_iter()
    .unzip();
    let new = tx.insert_new_row("notify_subs", &columns, &cells)?;
    if !new {
        notes.left(row, "subscriptions occur twice");
    }
    Ok(new)
}
