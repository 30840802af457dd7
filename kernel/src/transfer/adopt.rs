//! Imports a board of Hermes Kanban row by row. Ids are kept.
//!
//! Values that the other program allows and this one does not are changed and reported: each kind of change is a line of
//! the report, with its number and its first rows. Values that no column takes are reported as well.

mod columns;
mod convert;
mod rows;
mod states;

use std::collections::BTreeMap;

use serde_json::json;

use self::convert::{
    ImportedTasks, Notes, moment, moment_or, owner, profile, report_lines, small, title, truth, words,
    workspace,
};
use self::rows::Incoming;
use super::cells::{number, text, word};
use super::export::{refuse_orphans, require_empty};
use super::peer::{Adopted, PeerBoard, PeerRow};
use crate::model::actor::Actor;
use crate::model::cell::Cell;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{AttachmentId, TaskId, Tenant};
use crate::model::note::NewAttachment;
use crate::store::convert::StoredTenant;
use crate::store::tx::Tx;

pub(crate) fn adopt(
    tx: &Tx<'_>,
    peer: &PeerBoard,
    files: &BTreeMap<AttachmentId, NewAttachment>,
    actor: &Actor,
    now: Timestamp,
) -> Result<Adopted, Error> {
    require_empty(tx)?;
    tx.import_rows(|| rows_of(tx, peer, files, actor, now))
}

fn rows_of(
    tx: &Tx<'_>,
    peer: &PeerBoard,
    files: &BTreeMap<AttachmentId, NewAttachment>,
    actor: &Actor,
    now: Timestamp,
) -> Result<Adopted, Error> {
    tx.defer_references()?;
    let mut notes = Notes::default();
    let mut taken = BTreeMap::new();
    let all = |_: &str| true;
    columns::add_notes(peer, &mut notes)?;
    let mut known = ImportedTasks::default();
    // Tasks come first: all other rows are imported only if their task was.
    peer.0.each("tasks", all, |row| {
        let Some((id, tenant)) = task(tx, row, actor, now, &mut notes)? else { return Ok(()) };
        known.add(&id, tenant.as_ref());
        // Links from these tasks would make their children wait forever.
        if text(row, "status").as_deref() == Some("archived") && moment(row, "completed_at").is_none() {
            known.give_up(id);
        }
        Ok(())
    })?;
    tx.reserve_ids_of_tasks()?;
    taken.insert("tasks".to_owned(), known.count());
    let mut count = |table: &str, take: &dyn Fn(Incoming<'_>) -> Result<bool, Error>| {
        let mut imported = 0;
        peer.0.each(table, all, |row| {
            imported += u64::from(take(Incoming { tx, row, known: &known, now, notes: &mut notes })?);
            Ok(())
        })?;
        taken.insert(table.to_owned(), imported);
        Ok::<(), Error>(())
    };
    // Runs come before comments, whose authors are recognized by the runs' profiles, and before the states.
    count("task_runs", &rows::run)?;
    count("task_links", &rows::link)?;
    count("task_comments", &rows::comment)?;
    count("task_events", &rows::event)?;
    count("task_attachments", &|at| rows::attachment(at, files))?;
    count("kanban_notify_subs", &rows::subscription)?;
    peer.0.each(
        "tasks",
        |column| matches!(column, "id" | "last_heartbeat_at"),
        |row| owner(row, "id", &known).map_or(Ok(()), |id| rows::heartbeat(tx, &id, row, &mut notes)),
    )?;
    // Finished tasks come first, because the states of the others depend on them.
    for is_over in [true, false] {
        peer.0.each(
            "tasks",
            |column| states::COLUMNS.contains(&column),
            |row| match owner(row, "id", &known).filter(|_| states::is_over(row) == is_over) {
                Some(id) => states::enter(tx, &id, known.tenant(&id), row, actor, now, &mut notes),
                None => Ok(()),
            },
        )?;
    }
    refuse_orphans(tx)?;
    Ok(Adopted { taken, changed: report_lines(notes.changed), left: report_lines(notes.left) })
}

/// Columns of texts that have the same meaning in both programs.
const WORDS: [&str; 7] = [
    "branch_name",
    "project_id",
    "created_by",
    "session_id",
    "workflow_template_id",
    "current_step_key",
    "model_override",
];

fn task(
    tx: &Tx<'_>,
    row: &PeerRow,
    actor: &Actor,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<Option<(TaskId, Option<Tenant>)>, Error> {
    let Some(id) = text(row, "id").and_then(|id| TaskId::in_full(id.as_ref()).ok()) else {
        notes.omitted(
            row,
            "tasks have an id that cannot be one here: `t_`, then up to 62 letters, digits, `_` or `-`",
        );
        return Ok(None);
    };
    let tenant = word(row, "tenant").and_then(|name| {
        let tenant = name.parse::<Tenant>().ok();
        if tenant.is_none() {
            notes.changed(row, "tenants have names that cannot be used here: the tasks have none");
        }
        tenant
    });
    let mut key = word(row, "idempotency_key");
    if let Some(used) = &key
        && tx.is_key_used(tenant.as_ref(), used)?
    {
        notes.changed(row, "idempotency keys were used twice: the first task has them");
        key = None;
    }
    let created = moment_or(row, "created_at", now, notes);
    let completed = moment(row, "completed_at");
    let updated = completed.or(moment(row, "started_at")).unwrap_or(created);
    let priority = number(row, "priority").unwrap_or(0);
    // The task starts as new and untouched. `states::enter` moves it to its state.
    let mut cells: Vec<(&str, Cell)> = vec![
        ("id", (&id).into()),
        ("title", title(row, notes).into()),
        ("assignee", profile(row, "assignee", notes).into()),
        ("status", "triage".into()),
        ("priority", priority.into()),
        ("tenant", StoredTenant(tenant.as_ref()).into()),
        ("workspace", workspace(row, notes).into()),
        ("creator_uid", actor.uid.into()),
        ("created_at", created.into()),
        ("updated_at", updated.into()),
        ("started_at", moment(row, "started_at").into()),
        ("skills", json!(words(row, "skills", notes)).to_string().into()),
        ("max_runtime_us", rows::runtime(row, notes).into()),
        ("idempotency_key", key.into()),
        ("goal_mode", truth(row, "goal_mode").into()),
    ];
    cells.extend(["body", "result", "last_failure_error"].map(|column| (column, text(row, column).into())));
    cells.extend(WORDS.map(|column| (column, word(row, column).into())));
    cells.extend(["max_retries", "goal_max_turns"].map(|column| (column, small(row, column, notes).into())));
    let counts = ["block_recurrences", "consecutive_failures"];
    cells.extend(counts.map(|column| (column, small(row, column, notes).unwrap_or(0).into())));
    insert(tx, "tasks", cells)?;
    Ok(Some((id, tenant)))
}

/// Inserts a row into a table.
fn insert(tx: &Tx<'_>, table: &str, cells: Vec<(&str, Cell)>) -> Result<(), Error> {
    let (columns, cells): (Vec<&str>, Vec<Cell>) = cells.into_iter().unzip();
    tx.insert_row(table, &columns, &cells)
}
