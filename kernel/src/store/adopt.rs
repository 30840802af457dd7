//! Another program's board, row by row in this one's terms. Ids are kept.
//!
//! What the other one allows and this one does not is put right and told: each kind of change is one line of the report,
//! with how often it was made and the rows that it was made to. Values that no column takes are reported as well.

mod columns;
mod enter;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::params;
use serde_json::json;

use super::cells::{
    Notes, moment, moment_or, number, owner, profile, small, text, title, told, truth, word, words, workspace,
};
use super::convert::Step as _;
use super::export::{refuse_orphans, require_empty};
use super::peer::{Adopted, PeerBoard, PeerRow};
use super::tx::Tx;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{AttachmentId, TaskId, Tenant};
use crate::model::note::NewAttachment;

pub(crate) fn adopt(
    view: &View<'_>,
    tx: &Tx<'_>,
    peer: &PeerBoard,
    files: &BTreeMap<AttachmentId, NewAttachment>,
    actor: &Actor,
) -> Result<Adopted, Error> {
    require_empty(tx)?;
    tx.conn.pragma_update(None, "defer_foreign_keys", true).step("begin the import")?;
    let now = view.now();
    let mut notes = Notes::default();
    let mut taken = BTreeMap::new();
    let rows = |table: &str| peer.rows.get(table).map(Vec::as_slice).unwrap_or_default();
    columns::tell(peer, &mut notes);
    let mut known = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for row in rows("tasks") {
        if let Some(id) = task(tx, row, actor, now, &mut keys, &mut notes)? {
            known.insert(id);
        }
    }
    taken.insert("tasks".to_owned(), u64::try_from(known.len()).unwrap_or(0));
    let given_up: BTreeSet<TaskId> = rows("tasks")
        .iter()
        .filter(|row| {
            text(row, "status").as_deref() == Some("archived") && moment(row, "completed_at").is_none()
        })
        .filter_map(|row| owner(row, "id", &known))
        .collect();
    let mut count = |table: &str, each: &mut dyn FnMut(&PeerRow, &mut Notes) -> Result<bool, Error>| {
        let mut kept = 0;
        for row in rows(table) {
            kept += u64::from(each(row, &mut notes)?);
        }
        taken.insert(table.to_owned(), kept);
        Ok::<(), Error>(())
    };
    count("task_runs", &mut |row, notes| rows::run(tx, row, &known, now, notes))?;
    count("task_links", &mut |row, notes| rows::link(view, tx, row, (&known, &given_up), notes))?;
    count("task_comments", &mut |row, notes| rows::comment(tx, row, &known, now, notes))?;
    count("task_events", &mut |row, notes| rows::event(tx, row, &known, now, notes))?;
    count("task_attachments", &mut |row, notes| rows::attachment(tx, row, (&known, files), now, notes))?;
    count("kanban_notify_subs", &mut |row, notes| rows::subscription(tx, row, &known, now, notes))?;
    for row in rows("tasks") {
        if let Some(id) = owner(row, "id", &known) {
            rows::heartbeat(tx, &id, row, &mut notes)?;
        }
    }
    // What is over first: where the others stand depends on it.
    let (over, open): (Vec<_>, Vec<_>) = rows("tasks").iter().partition(|row| enter::is_over(row));
    for row in over.into_iter().chain(open) {
        if let Some(id) = owner(row, "id", &known) {
            enter::enter(view, tx, &id, row, actor, &mut notes)?;
        }
    }
    refuse_orphans(tx)?;
    Ok(Adopted { taken, changed: told(notes.changed), left: told(notes.left) })
}

fn task(
    tx: &Tx<'_>,
    row: &PeerRow,
    actor: &Actor,
    now: Timestamp,
    keys: &mut BTreeSet<(String, String)>,
    notes: &mut Notes,
) -> Result<Option<TaskId>, Error> {
    let Some(id) = text(row, "id").and_then(|id| id.parse::<TaskId>().ok()) else {
        notes.left(
            row,
            "tasks have an id that cannot be one here: `t_`, then up to 62 letters, digits, `_` or `-`",
        );
        return Ok(None);
    };
    let tenant = word(row, "tenant").filter(|name| {
        let fits = name.parse::<Tenant>().is_ok();
        if !fits {
            notes.changed(row, "tenants have names that cannot be used here: the tasks have none");
        }
        fits
    });
    let tenant = tenant.unwrap_or_default();
    let key = word(row, "idempotency_key").filter(|key| {
        let first = keys.insert((tenant.clone(), key.clone()));
        if !first {
            notes.changed(row, "idempotency keys were used twice: the first task has them");
        }
        first
    });
    let created = moment_or(row, "created_at", now, notes);
    let completed = moment(row, "completed_at");
    let updated = completed.or(moment(row, "started_at")).unwrap_or(created);
    let priority = number(row, "priority").unwrap_or(0);
    tx.reserve_task_id(&id)?;
    // It enters as the newest task that nobody has touched; `enter` moves it to where it stands.
    tx.conn.prepare_cached(
        "INSERT INTO tasks (id, title, body, assignee, status, priority, tenant, workspace, branch_name, project_id, \
           created_by, creator_uid, created_at, updated_at, started_at, completed_at, result, skills, max_retries, \
           max_runtime_us, session_id, workflow_template_id, current_step_key, model_override, idempotency_key, \
           goal_mode, goal_max_turns, block_recurrences, consecutive_failures, last_failure_error) \
         VALUES (?1, ?2, ?3, ?4, 'triage', ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, NULL, ?15, ?16, ?17, ?18, ?19, \
           ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)",
    )
    .step("store the task")?
    .execute(params![
        id,
        title(row, notes),
        text(row, "body"),
        profile(row, "assignee", notes),
        priority,
        tenant,
        workspace(row, notes),
        word(row, "branch_name"),
        word(row, "project_id"),
        word(row, "created_by"),
        actor.uid,
        created,
        updated,
        moment(row, "started_at"),
        text(row, "result"),
        json!(words(row, "skills", notes)).to_string(),
        small(row, "max_retries", notes),
        rows::runtime(row, notes),
        word(row, "session_id"),
        word(row, "workflow_template_id"),
        word(row, "current_step_key"),
        word(row, "model_override"),
        key,
        truth(row, "goal_mode"),
        small(row, "goal_max_turns", notes),
        small(row, "block_recurrences", notes).unwrap_or(0),
        small(row, "consecutive_failures", notes).unwrap_or(0),
        text(row, "last_failure_error"),
    ])
    .step("store the task")?;
    Ok(Some(id))
}
