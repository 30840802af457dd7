//! Start of the event log, and the state of each task at this start. Old events are folded: their effects are kept as
//! states, and the events are removed.

use rusqlite::{Row, params};

use super::convert::{json, to_json};
use super::events::Logged;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{EventId, TaskId};
use crate::model::log::Horizon;
use crate::model::state::State;

/// Event to be folded.
pub(crate) struct Old {
    pub(crate) id: EventId,
    /// Task that the event moves, with the effect; none for an event without an effect on a state.
    pub(crate) step: Option<(TaskId, Logged)>,
    /// Length of its texts, in bytes.
    pub(crate) bytes: u64,
}

impl Tx<'_> {
    pub(crate) fn log_horizon(&self) -> Result<Option<Horizon>, Error> {
        self.conn.find(
            "read where the log starts",
            "SELECT event_id, folded_at FROM event_horizon WHERE only = 1",
            [],
            |row| Ok(Horizon { through: row.get("event_id")?, at: row.get("folded_at")? }),
        )
    }

    /// Removes the events up to `through`, which were folded.
    pub(crate) fn cut_log(&self, through: EventId, now: Timestamp) -> Result<(), Error> {
        self.conn.run("remove folded events", "DELETE FROM task_events WHERE id <= ?1", [through])?;
        self.conn.run(
            "store where the log starts",
            "INSERT INTO event_horizon (only, event_id, folded_at) VALUES (1, ?1, ?2) \
         ON CONFLICT (only) DO UPDATE SET event_id = ?1, folded_at = ?2",
            params![through, now],
        )
    }

    pub(crate) fn folded_state(&self, task: &TaskId) -> Result<Option<State>, Error> {
        self.conn
            .find(
                "read a folded state",
                "SELECT state FROM folded_states WHERE task_id = ?1",
                [task],
                |row| json(row, "state"),
            )
            .map(Option::flatten)
    }

    /// Stores the state of a task at the start of the log; with none, removes it, because the task was deleted.
    pub(crate) fn store_folded_state(&self, task: &TaskId, state: Option<State>) -> Result<(), Error> {
        let step = "store a folded state";
        match state {
            Some(state) => self.conn.run(
                step,
                "INSERT INTO folded_states (task_id, state) VALUES (?1, ?2) \
                 ON CONFLICT (task_id) DO UPDATE SET state = ?2",
                params![task, to_json(&state)?],
            ),
            None => self.conn.run(step, "DELETE FROM folded_states WHERE task_id = ?1", [task]),
        }
    }

    /// Calls `each` for every folded state.
    pub(crate) fn each_folded_state(
        &self,
        mut each: impl FnMut(TaskId, State) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, json(row, "state")?));
        let sql = "SELECT task_id, state FROM folded_states";
        self.conn.scan("read the folded states", sql, [], read, |(task, state)| {
            state.map_or(Ok(()), |state| each(task, state))
        })
    }

    /// Returns the oldest events from before a time, at most `limit`. The first younger event ends the list, even if
    /// later events have older times, as after the clock was set back: only a prefix of the log can be folded.
    pub(crate) fn oldest_events(&self, before: Timestamp, limit: u32) -> Result<Vec<Old>, Error> {
        self.conn.with(
            "read the oldest events",
            "SELECT id, task_id, kind = 'deleted' AS deleted, change, created_at, \
               ifnull(octet_length(task_id), 0) + octet_length(kind) + ifnull(octet_length(payload), 0) + ifnull(octet_length(change), 0) AS bytes \
             FROM task_events ORDER BY id LIMIT ?1",
            |statement| {
                let mut rows = statement.query([limit])?;
                let mut old = Vec::new();
                while let Some(row) = rows.next()? {
                    if row.get::<_, Timestamp>("created_at")? >= before {
                        break;
                    }
                    let deleted: bool = row.get("deleted")?;
                    let step = json(row, "change")?.map(Logged::Moved).or(deleted.then_some(Logged::Deleted));
                    let bytes: i64 = row.get("bytes")?;
                    old.push(Old {
                        id: row.get("id")?,
                        step: row.get::<_, Option<TaskId>>("task_id")?.zip(step),
                        bytes: u64::try_from(bytes).unwrap_or(0),
                    });
                }
                Ok(old)
            },
        )
    }

    /// Returns the number and the total size of the events before a time that repeated calls of `oldest_events` would
    /// return.
    pub(crate) fn count_events_before(&self, before: Timestamp) -> Result<(u64, u64), Error> {
        self.conn.fetch("count the oldest events", "SELECT count(*) AS events, \
           ifnull(sum(ifnull(octet_length(task_id), 0) + octet_length(kind) + ifnull(octet_length(payload), 0) + ifnull(octet_length(change), 0)), 0) AS bytes \
         FROM task_events \
         WHERE id < ifnull((SELECT min(id) FROM task_events WHERE created_at >= ?1), 9223372036854775807)", [before], |row| Ok((row.get::<_, i64>("events")?, row.get::<_, i64>("bytes")?)))
    .map(|(events, bytes)| (events.unsigned_abs(), bytes.unsigned_abs()))
    }
}
