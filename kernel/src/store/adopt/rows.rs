//! The rows that belong to tasks: runs, links, comments, events, files, subscriptions.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::params;

use crate::board::view::View;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{AttachmentId, TaskId};
use crate::model::note::NewAttachment;
use crate::model::outcome::Outcome;
use crate::store::cells::{Notes, moment, moment_or, number, object, owner, profile, text, word};
use crate::store::convert::Step as _;
use crate::store::peer::PeerRow;
use crate::store::tx::Tx;

/// The limit of a task's runs, or of a run.
pub(super) fn runtime(row: &PeerRow, notes: &mut Notes) -> Option<i64> {
    let seconds = number(row, "max_runtime_seconds")?;
    let limit =
        Some(seconds).filter(|seconds| *seconds > 0).and_then(|seconds| seconds.checked_mul(1_000_000));
    if limit.is_none() {
        notes.changed(
            row,
            "limits of the runtime are no positive number of seconds: they have none of their own",
        );
    }
    limit
}

/// Keeps the last sign of life of a task with its newest run, where that has none of its own.
pub(super) fn heartbeat(tx: &Tx<'_>, task: &TaskId, row: &PeerRow, notes: &mut Notes) -> Result<(), Error> {
    let Some(at) = moment(row, "last_heartbeat_at") else { return Ok(()) };
    let newest = "SELECT max(id) FROM task_runs WHERE task_id = ?1";
    let kept = tx.conn
        .prepare_cached(&format!(
            "UPDATE task_runs SET last_heartbeat_at = max(ifnull(last_heartbeat_at, 0), ?2) WHERE id = ({newest})"
        ))
        .and_then(|mut statement| statement.execute(params![task, at]))
        .step("record the heartbeat")?;
    if kept == 0 {
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
                "runs ended in a way that has no word here: they are lost ones, with the word as the error",
            );
            return ("lost", Outcome::Lost, Some(said));
        }
    };
    (status, outcome, None)
}

pub(super) fn run(
    tx: &Tx<'_>,
    row: &PeerRow,
    known: &BTreeSet<TaskId>,
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
    tx.conn.prepare_cached(
        "INSERT INTO task_runs (id, task_id, tenant, profile, step_key, status, outcome, holder, summary, error, metadata, \
           started_at, ended_at, last_heartbeat_at, max_runtime_us) \
         SELECT ?1, id, tenant, ?3, ?4, ?5, ?6, 'hand', ?7, ?8, ?9, ?10, ?11, ?12, ?13 FROM tasks WHERE id = ?2",
    )
    .step("store the run")?
    .execute(params![
        id,
        task,
        profile(row, "profile", notes),
        word(row, "step_key"),
        status,
        outcome,
        text(row, "summary"),
        text(row, "error").or(unknown),
        object(row, "metadata", notes),
        started,
        moment(row, "ended_at").unwrap_or(now),
        moment(row, "last_heartbeat_at"),
        runtime(row, notes),
    ])
    .step("store the run")?;
    Ok(true)
}

pub(super) fn link(
    view: &View<'_>,
    tx: &Tx<'_>,
    row: &PeerRow,
    (known, given_up): (&BTreeSet<TaskId>, &BTreeSet<TaskId>),
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(parent), Some(child)) = (owner(row, "parent_id", known), owner(row, "child_id", known)) else {
        notes.left(row, "links lead to a task that is not there");
        return Ok(false);
    };
    if view.expect_task(&parent)?.tenant != view.expect_task(&child)?.tenant {
        notes.left(row, "links join tasks of different tenants");
        return Ok(false);
    }
    if given_up.contains(&parent) {
        notes.left(
            row,
            "links lead from a task that was archived unfinished: its children would wait for ever",
        );
        return Ok(false);
    }
    if tx.is_above(&child, &parent)? {
        notes.left(row, "links close a circle");
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
    known: &BTreeSet<TaskId>,
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
    tx.conn.prepare_cached(
        "INSERT INTO task_comments (id, task_id, author, author_kind, body, created_at) \
         SELECT ?1, id, ?3, CASE WHEN ?3 = assignee OR ?3 IN (SELECT profile FROM task_runs WHERE task_id = ?2) \
           THEN 'worker' ELSE 'person' END, ?4, ?5 FROM tasks WHERE id = ?2",
    )
    .and_then(|mut statement| {
        statement.execute(params![
            number(row, "id"),
            task,
            shown,
            text(row, "body").unwrap_or_default(),
            moment_or(row, "created_at", now, notes)
        ])
    })
    .step("store the comment")?;
    Ok(true)
}

pub(super) fn event(
    tx: &Tx<'_>,
    row: &PeerRow,
    known: &BTreeSet<TaskId>,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(task), Some(kind)) = (owner(row, "task_id", known), word(row, "kind")) else {
        notes.left(row, "events belong to no task that was taken");
        return Ok(false);
    };
    tx.conn
        .prepare_cached(
            "INSERT INTO task_events (id, task_id, run_id, tenant, kind, payload, created_at) \
         SELECT ?1, id, ?3, tenant, ?4, ?5, ?6 FROM tasks WHERE id = ?2",
        )
        .and_then(|mut statement| {
            statement.execute(params![
                number(row, "id"),
                task,
                number(row, "run_id"),
                kind,
                object(row, "payload", notes),
                moment_or(row, "created_at", now, notes)
            ])
        })
        .step("store the event")?;
    Ok(true)
}

pub(super) fn attachment(
    tx: &Tx<'_>,
    row: &PeerRow,
    (known, files): (&BTreeSet<TaskId>, &BTreeMap<AttachmentId, NewAttachment>),
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
    tx.conn.execute(
        "INSERT INTO task_attachments (id, task_id, filename, content_type, size, uploaded_by, sha256, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            id,
            task,
            file.filename,
            file.content_type,
            i64::try_from(file.size).unwrap_or(i64::MAX),
            file.author,
            file.sha256,
            moment_or(row, "created_at", now, notes)
        ],
    )
    .step("store the attachment")?;
    Ok(true)
}

pub(super) fn subscription(
    tx: &Tx<'_>,
    row: &PeerRow,
    known: &BTreeSet<TaskId>,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(task), Some(platform), Some(chat)) =
        (owner(row, "task_id", known), word(row, "platform"), word(row, "chat_id"))
    else {
        notes.left(row, "subscriptions belong to no task that was taken");
        return Ok(false);
    };
    tx.conn.execute(
        "INSERT OR IGNORE INTO notify_subs (task_id, platform, chat_id, thread_id, user_id, notifier_profile, created_at, \
           last_event_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            task,
            platform,
            chat,
            text(row, "thread_id").unwrap_or_default(),
            word(row, "user_id"),
            word(row, "notifier_profile"),
            moment_or(row, "created_at", now, notes),
            number(row, "last_event_id").unwrap_or(0)
        ],
    )
    .step("store the subscription")
    .map(|rows| {
        if rows == 0 {
            notes.left(row, "subscriptions occur twice");
        }
        rows == 1
    })
}
