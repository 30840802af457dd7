//! Another program's board, row by row in this one's terms. Ids are kept.
//!
//! What the other one allows and this one does not is put right and told: each kind of change is one line of the report,
//! with how often it was made.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params};
use serde_json::json;

use super::cells::{
    Notes, moment, moment_or, number, object, owner, profile, text, title, told, word, workspace,
};
use super::convert::Step as _;
use super::events::{self, NewEvent};
use super::export::{refuse_orphans, require_empty};
use super::peer::{Adopted, PeerBoard, PeerRow};
use super::{links, tasks};
use crate::actor::Actor;
use crate::board::NewAttachment;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::id::{AttachmentId, RunId, TaskId, Tenant};
use crate::outcome::{BlockKind, Outcome};
use crate::status::{Change, Gate, Intake, State, Then};
use crate::transition::next;
use crate::view::View;

pub(crate) fn adopt(
    view: &View<'_>,
    conn: &Connection,
    peer: &PeerBoard,
    files: &BTreeMap<AttachmentId, NewAttachment>,
    actor: &Actor,
) -> Result<Adopted, Error> {
    require_empty(conn)?;
    conn.pragma_update(None, "defer_foreign_keys", true).step("begin the import")?;
    let now = view.now();
    let mut notes = Notes::default();
    let mut taken = BTreeMap::new();
    let rows = |table: &str| peer.rows.get(table).map(Vec::as_slice).unwrap_or_default();
    let mut known = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for row in rows("tasks") {
        if let Some(id) = task(conn, row, actor, now, &mut keys, &mut notes)? {
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
    count("task_runs", &mut |row, notes| run(conn, row, &known, now, notes))?;
    count("task_links", &mut |row, notes| link(view, conn, row, (&known, &given_up), notes))?;
    count("task_comments", &mut |row, notes| comment(conn, row, &known, now, notes))?;
    count("task_events", &mut |row, notes| event(conn, row, &known, now, notes))?;
    count("task_attachments", &mut |row, notes| attachment(conn, row, (&known, files), now, notes))?;
    count("kanban_notify_subs", &mut |row, notes| subscription(conn, row, &known, now, notes))?;
    // What is over first: where the others stand depends on it.
    let (over, open): (Vec<_>, Vec<_>) = rows("tasks").iter().partition(|row| is_over(row));
    for row in over.into_iter().chain(open) {
        if let Some(id) = owner(row, "id", &known) {
            enter(view, conn, &id, row, actor, &mut notes)?;
        }
    }
    refuse_orphans(conn)?;
    Ok(Adopted { taken, changed: told(notes.changed), left: told(notes.left) })
}

fn task(
    conn: &Connection,
    row: &PeerRow,
    actor: &Actor,
    now: Timestamp,
    keys: &mut BTreeSet<(String, String)>,
    notes: &mut Notes,
) -> Result<Option<TaskId>, Error> {
    let Some(id) = text(row, "id").and_then(|id| id.parse::<TaskId>().ok()) else {
        notes.left("tasks have no id of the form t_0123abcd");
        return Ok(None);
    };
    let tenant = word(row, "tenant").filter(|name| {
        let fits = name.parse::<Tenant>().is_ok();
        if !fits {
            notes.changed("tenants have names that cannot be used here: the tasks have none");
        }
        fits
    });
    let tenant = tenant.unwrap_or_default();
    let key = word(row, "idempotency_key").filter(|key| {
        let first = keys.insert((tenant.clone(), key.clone()));
        if !first {
            notes.changed("idempotency keys were used twice: the first task has them");
        }
        first
    });
    let skills = text(row, "skills").and_then(|text| serde_json::from_str::<Vec<String>>(&text).ok());
    let created = moment_or(row, "created_at", now, notes);
    let completed = moment(row, "completed_at");
    let updated = completed.or(moment(row, "started_at")).unwrap_or(created);
    let priority = number(row, "priority").unwrap_or(0);
    let positive = |column: &str| number(row, column).filter(|number| *number > 0);
    let runtime = positive("max_runtime_seconds").and_then(|seconds| seconds.checked_mul(1_000_000));
    let small =
        |column: &str| number(row, column).filter(|number| (0..=i64::from(u32::MAX)).contains(number));
    tasks::reserve_id(conn, &id)?;
    // It enters as the newest task that nobody has touched; `enter` moves it to where it stands.
    conn.prepare_cached(
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
        json!(skills.unwrap_or_default()).to_string(),
        small("max_retries"),
        runtime,
        word(row, "session_id"),
        word(row, "workflow_template_id"),
        word(row, "current_step_key"),
        word(row, "model_override"),
        key,
        number(row, "goal_mode").is_some_and(|mode| mode != 0),
        small("goal_max_turns"),
        number(row, "block_recurrences").unwrap_or(0).max(0),
        small("consecutive_failures").unwrap_or(0),
        text(row, "last_failure_error"),
    ])
    .step("store the task")?;
    Ok(Some(id))
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
                "runs ended in a way that has no word here: they are lost ones, with the word as the error",
            );
            return ("lost", Outcome::Lost, Some(said));
        }
    };
    (status, outcome, None)
}

fn run(
    conn: &Connection,
    row: &PeerRow,
    known: &BTreeSet<TaskId>,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(id), Some(task)) = (number(row, "id"), owner(row, "task_id", known)) else {
        notes.left("runs belong to no task that was taken");
        return Ok(false);
    };
    let (status, outcome, unknown) = if moment(row, "ended_at").is_some() {
        outcome(row, notes)
    } else {
        notes.changed("runs were open: they are taken back, and their tasks wait to be started again");
        ("reclaimed", Outcome::Reclaimed, None)
    };
    let started = moment_or(row, "started_at", now, notes);
    conn.prepare_cached(
        "INSERT INTO task_runs (id, task_id, tenant, profile, step_key, status, outcome, holder, summary, error, metadata, \
           started_at, ended_at, last_heartbeat_at) \
         SELECT ?1, id, tenant, ?3, ?4, ?5, ?6, 'hand', ?7, ?8, ?9, ?10, ?11, ?12 FROM tasks WHERE id = ?2",
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
    ])
    .step("store the run")?;
    Ok(true)
}

fn link(
    view: &View<'_>,
    conn: &Connection,
    row: &PeerRow,
    (known, given_up): (&BTreeSet<TaskId>, &BTreeSet<TaskId>),
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(parent), Some(child)) = (owner(row, "parent_id", known), owner(row, "child_id", known)) else {
        notes.left("links lead to a task that is not there");
        return Ok(false);
    };
    if view.expect_task(&parent)?.tenant != view.expect_task(&child)?.tenant {
        notes.left("links join tasks of different tenants");
        return Ok(false);
    }
    if given_up.contains(&parent) {
        notes.left("links lead from a task that was archived unfinished: its children would wait for ever");
        return Ok(false);
    }
    if links::is_above(conn, &child, &parent)? {
        notes.left("links close a circle");
        return Ok(false);
    }
    links::insert(conn, &parent, &child)
}

fn comment(
    conn: &Connection,
    row: &PeerRow,
    known: &BTreeSet<TaskId>,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let Some(task) = owner(row, "task_id", known) else {
        notes.left("comments belong to no task that was taken");
        return Ok(false);
    };
    let author = word(row, "author").unwrap_or_else(|| "unknown".to_owned());
    let author: String = author.chars().map(|c| if c.is_control() || c == '`' { '?' } else { c }).collect();
    conn.prepare_cached(
        "INSERT INTO task_comments (id, task_id, author, author_kind, body, created_at) \
         SELECT ?1, id, ?3, CASE WHEN ?3 = assignee OR ?3 IN (SELECT profile FROM task_runs WHERE task_id = ?2) \
           THEN 'worker' ELSE 'person' END, ?4, ?5 FROM tasks WHERE id = ?2",
    )
    .and_then(|mut statement| {
        statement.execute(params![
            number(row, "id"),
            task,
            author,
            text(row, "body").unwrap_or_default(),
            moment_or(row, "created_at", now, notes)
        ])
    })
    .step("store the comment")?;
    Ok(true)
}

fn event(
    conn: &Connection,
    row: &PeerRow,
    known: &BTreeSet<TaskId>,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(task), Some(kind)) = (owner(row, "task_id", known), word(row, "kind")) else {
        notes.left("events belong to no task that was taken");
        return Ok(false);
    };
    conn.prepare_cached(
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

fn attachment(
    conn: &Connection,
    row: &PeerRow,
    (known, files): (&BTreeSet<TaskId>, &BTreeMap<AttachmentId, NewAttachment>),
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let Some(task) = owner(row, "task_id", known) else {
        notes.left("attachments belong to no task that was taken");
        return Ok(false);
    };
    // Whoever asked has told why it has no such file.
    let Some((id, file)) = number(row, "id").and_then(|id| files.get_key_value(&AttachmentId(id))) else {
        return Ok(false);
    };
    conn.execute(
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

fn subscription(
    conn: &Connection,
    row: &PeerRow,
    known: &BTreeSet<TaskId>,
    now: Timestamp,
    notes: &mut Notes,
) -> Result<bool, Error> {
    let (Some(task), Some(platform), Some(chat)) =
        (owner(row, "task_id", known), word(row, "platform"), word(row, "chat_id"))
    else {
        notes.left("subscriptions belong to no task that was taken");
        return Ok(false);
    };
    conn.execute(
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
    .map(|rows| rows == 1)
}

/// The way that leads to where a task stands, in this program's changes, and why it is blocked.
fn way(
    view: &View<'_>,
    id: &TaskId,
    row: &PeerRow,
    notes: &mut Notes,
) -> Result<(Vec<Change>, Option<String>), Error> {
    let open = Change::Created { intake: Intake::Normal, gate: Gate::Open };
    let blocked = |kind, why: &str| (vec![open, Change::Blocked { kind }], Some(why.to_owned()));
    let status = text(row, "status").unwrap_or_default();
    Ok(match status.as_str() {
        "todo" | "ready" | "running" => {
            if status == "running" {
                notes.changed("tasks were running: they wait to be started again");
            }
            let gate = if view.open_parents(id)?.is_empty() { Gate::Open } else { Gate::Parents };
            (vec![Change::Created { intake: Intake::Normal, gate }], None)
        }
        "blocked" => {
            let kind = word(row, "block_kind").and_then(|kind| kind.parse().ok());
            let failed = word(row, "last_failure_error");
            let gave_up = failed.is_some() && number(row, "consecutive_failures").unwrap_or(0) > 0;
            let kind = kind.unwrap_or(if gave_up { BlockKind::GaveUp } else { BlockKind::NeedsInput });
            blocked(kind, &failed.unwrap_or_else(|| "blocked when it was imported".to_owned()))
        }
        "scheduled" => {
            notes.changed(
                "tasks were scheduled without a time: they are blocked until somebody gives them one",
            );
            blocked(BlockKind::NeedsInput, "it was scheduled without a time")
        }
        "review" => match view.runs(id)?.last().map(|run| run.id) {
            Some(run) => {
                let ended = Change::Ended { run, outcome: Outcome::ReviewRequested, then: Then::Review };
                (vec![open, Change::Started { run }, ended], None)
            }
            None => blocked(BlockKind::NeedsInput, "it was in review, and nobody had worked on it"),
        },
        "done" => (vec![open, Change::Completed], None),
        "archived" if moment(row, "completed_at").is_some() => {
            (vec![open, Change::Completed, Change::Archived], None)
        }
        "archived" => (vec![open, Change::Archived], None),
        status => {
            if status != "triage" {
                notes.changed("tasks had a status that does not exist: they are in triage");
            }
            (vec![Change::Created { intake: Intake::Triage, gate: Gate::Open }], None)
        }
    })
}

/// Whether a task is finished or out of sight.
fn is_over(row: &PeerRow) -> bool {
    matches!(text(row, "status").as_deref(), Some("done" | "archived"))
}

/// Moves a task to where it stands, and tells so in the log, from which its state can be replayed.
fn enter(
    view: &View<'_>,
    conn: &Connection,
    id: &TaskId,
    row: &PeerRow,
    actor: &Actor,
    notes: &mut Notes,
) -> Result<(), Error> {
    let (changes, why) = way(view, id, row, notes)?;
    let task = view.expect_task(id)?;
    let tenant = task.tenant.as_ref().map_or("", Tenant::as_str);
    let mut state = None;
    for (at, change) in changes.iter().enumerate() {
        state =
            Some(next(state, *change).map_err(|error| Error::conflict(error.to_string(), "report this"))?);
        let run = if let Change::Started { run } | Change::Ended { run, .. } = change {
            Some(*run)
        } else {
            None::<RunId>
        };
        let payload = (at == 0).then(|| json!({ "status": text(row, "status"), "from": "import" }));
        events::append(
            conn,
            &NewEvent {
                task: Some(id),
                run,
                tenant,
                kind: "imported",
                payload,
                change: Some(*change),
                actor: &actor.label(),
                now: view.now(),
            },
        )?;
    }
    let Some(state) = state else { return Ok(()) };
    let work_by = if state == State::Review {
        // Whoever had the last run: the one who may not approve it.
        let worker = view.runs(id)?.last().and_then(|run| run.profile.as_ref().map(ToString::to_string));
        Some(format!("worker:{}", worker.as_deref().unwrap_or("unknown")))
    } else {
        None
    };
    let kind = if let State::Blocked { kind } = state { Some(kind) } else { None };
    let finished = matches!(state, State::Done | State::Archived { finished: crate::status::WasDone::Yes });
    let completed = finished.then(|| moment(row, "completed_at").unwrap_or(task.updated_at));
    conn.execute(
        "UPDATE tasks SET status = ?2, block_kind = ?3, block_reason = ?4, completed_at = ?5, work_by = ?6 WHERE id = ?1",
        params![id, state.status(), kind, why, completed, work_by],
    )
    .step("place the task")
    .map(drop)
}
