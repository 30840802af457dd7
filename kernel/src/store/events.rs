//! Queries of the event log.

use rusqlite::types::Value as Sql;
use rusqlite::{Row, Rows, params, params_from_iter};
use serde_json::Value;

use super::columns::columns;
use super::convert::{StoredTenant, json, to_json};
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::actor::ActorKind;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::filter::{EventFilter, Excerpt};
use crate::model::id::{EventId, RunId, TaskId, Tenant};
use crate::model::limits::ReplyCapacity;
use crate::model::note::Event;
use crate::model::state::Change;

/// Effect of an event on the state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logged {
    /// The event moves the task.
    Moved(Change),
    /// The event deletes the task.
    Deleted,
}

/// Limit on the events that are searched for the last note of a run, because a worker may write any number of other
/// events.
const LATEST_EVENTS: i64 = 100;

/// Row to append.
pub(crate) struct NewEvent<'a> {
    pub(crate) task: Option<&'a TaskId>,
    pub(crate) run: Option<RunId>,
    pub(crate) tenant: Option<&'a Tenant>,
    pub(crate) kind: EventKind,
    pub(crate) payload: Option<Value>,
    pub(crate) change: Option<Change>,
    pub(crate) actor: &'a str,
    pub(crate) now: Timestamp,
}

columns! {
    COLUMNS, read -> Event from "";
    "": task_id, run_id, tenant as optional, kind, payload as json, actor, created_at;
    ;
}

impl Tx<'_> {
    pub(crate) fn append_event(&self, event: &NewEvent<'_>) -> Result<EventId, Error> {
        let NewEvent { task, run, tenant, kind, payload, change, actor, now } = event;
        let (payload, change) =
            (payload.as_ref().map(Value::to_string), change.as_ref().map(to_json).transpose()?);
        let number = self.conn.insert(
            "append an event",
            "INSERT INTO task_events (task_id, run_id, tenant, kind, payload, change, actor, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![task, run, StoredTenant(*tenant), kind.as_str(), payload, change, actor, now],
        )?;
        Ok(EventId(number))
    }

    pub(crate) fn list_events(&self, filter: &EventFilter) -> Result<Excerpt<Event>, Error> {
        let mut sql = format!(
            "SELECT {COLUMNS}, ifnull(octet_length(payload), 0) AS size FROM task_events WHERE id > ?"
        );
        let mut values: Vec<Sql> = vec![filter.since.0.into()];
        if let Some(task) = &filter.task {
            sql.push_str(" AND task_id = ?");
            values.push(task.as_str().to_owned().into());
        }
        if let Some(tenant) = &filter.tenant {
            sql.push_str(" AND tenant = ?");
            values.push(tenant.as_str().to_owned().into());
        }
        if let Some(assignee) = &filter.assignee {
            sql.push_str(" AND task_id IN (SELECT id FROM tasks WHERE assignee = ?)");
            values.push(assignee.as_str().to_owned().into());
        }
        if !filter.kinds.is_empty() {
            sql.push_str(" AND kind IN (");
            sql.push_str(&vec!["?"; filter.kinds.len()].join(", "));
            sql.push(')');
            values.extend(filter.kinds.iter().map(|kind| Sql::from(kind.clone())));
        }
        sql.push_str(if filter.newest_first { " ORDER BY id DESC LIMIT ?" } else { " ORDER BY id LIMIT ?" });
        values.push(i64::from(filter.limit).saturating_add(1).into());
        let mut part = self.conn.with("list events", &sql, |statement| {
            some(&mut statement.query(params_from_iter(values))?, filter)
        })?;
        if filter.newest_first {
            part.rows.reverse();
        }
        Ok(part)
    }

    /// Returns true if any event has this kind. Reads the whole log if none has.
    pub(crate) fn has_events_of(&self, kind: &str) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM task_events WHERE kind = ?1)";
        self.conn.value("look for a kind of events", sql, [kind])
    }

    /// Returns the time of the last change of a task's status; none if its event was folded.
    pub(crate) fn last_change(&self, task: &TaskId) -> Result<Option<Timestamp>, Error> {
        let sql = "SELECT created_at FROM task_events WHERE task_id = ?1 AND change IS NOT NULL ORDER BY id DESC LIMIT 1";
        self.conn.find("find the last change of a task", sql, [task], |row| row.get(0))
    }

    /// Returns the worker's latest heartbeat note of a run, if it is among the latest events of the task.
    pub(crate) fn last_note(&self, task: &TaskId, run: RunId) -> Result<Option<String>, Error> {
        let sql = "SELECT payload ->> 'note' FROM \
                   (SELECT id, run_id, kind, payload FROM task_events WHERE task_id = ?1 ORDER BY id DESC LIMIT ?2) \
                   WHERE run_id = ?3 AND kind = ?4 AND payload ->> 'note' IS NOT NULL ORDER BY id DESC LIMIT 1";
        let heartbeat = EventKind::Heartbeat.as_str();
        let params = params![task, LATEST_EVENTS, run, heartbeat];
        self.conn.find("read the last note of a run", sql, params, |row| row.get(0))
    }

    /// Returns the number of changes that reviewers' runs have requested since a reviewer's approval or a person's last
    /// decision.
    pub(crate) fn rounds_of_changes(&self, task: &TaskId) -> Result<u32, Error> {
        let sql = "SELECT count(*) FROM task_events e JOIN task_runs r ON r.id = e.run_id \
                   WHERE e.task_id = ?1 AND e.kind = ?2 AND r.verdict_by LIKE ?3 || ':%' \
                     AND e.id > ifnull((SELECT max(id) FROM task_events WHERE task_id = ?1 AND change IS NOT NULL \
                       AND (kind = ?4 OR (actor LIKE ?5 || ':%' AND kind != ?6))), 0)";
        let [changes, approved, claimed] =
            [EventKind::ChangesRequested, EventKind::Approved, EventKind::Claimed].map(EventKind::as_str);
        let [worker, person] = [ActorKind::Worker, ActorKind::Person].map(ActorKind::as_str);
        let params = params![task, changes, worker, approved, person, claimed];
        self.conn.value("count rounds of changes", sql, params)
    }

    pub(crate) fn last_event(&self) -> Result<EventId, Error> {
        self.conn.value("read the last event", "SELECT max(ifnull((SELECT max(id) FROM task_events), 0), ifnull((SELECT event_id FROM event_horizon), 0))", [])
    }

    /// Calls `each` for every step of the log after an event, oldest first.
    pub(crate) fn each_step(
        &self,
        since: EventId,
        mut each: impl FnMut(EventId, TaskId, Logged) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let sql = format!(
            "SELECT id, task_id, change FROM task_events \
             WHERE id > ?1 AND (change IS NOT NULL OR kind = '{}') ORDER BY id",
            EventKind::Deleted
        );
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, json(row, "change")?));
        self.conn.scan("read the log", &sql, [since], read, |(id, task, change)| {
            each(id, task, change.map_or(Logged::Deleted, Logged::Moved))
        })
    }
}

/// Reads as many events as a list may have. Events beyond the space are not read.
fn some(rows: &mut Rows<'_>, filter: &EventFilter) -> rusqlite::Result<Excerpt<Event>> {
    let (mut events, mut capacity) = (Vec::new(), ReplyCapacity::new(filter.bytes));
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    while let Some(row) = rows.next()? {
        let fits = capacity.take(usize::try_from(row.get::<_, i64>("size")?).unwrap_or(usize::MAX));
        if events.len() >= limit || !(fits || events.is_empty()) {
            return Ok(Excerpt { rows: events, more: true });
        }
        events.push(read(row)?);
    }
    Ok(Excerpt { rows: events, more: false })
}
