//! Queries of stored times that lie in the future, for the correction after the clock was set back.

use rusqlite::params;

use super::convert::to_json;
use super::delays::PAUSES;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::clock_set::ClockSet;
use crate::model::error::Error;
use crate::model::id::TaskId;

/// Task that waits for a time in the future.
#[derive(Debug)]
pub(crate) struct FutureTask {
    pub(crate) id: TaskId,
    pub(crate) not_before: Timestamp,
    /// Moment from which the wait was counted, if that moment lies in the future: the end of the task's latest run, or
    /// the tick of its schedule.
    pub(crate) counted_from: Option<Timestamp>,
    /// True if the stored time of the task's last change lies in the future.
    pub(crate) is_changed_ahead: bool,
}

impl Tx<'_> {
    /// Returns the tasks that wait for a time, except for pauses on the clock of this boot, which a set clock does not
    /// affect.
    pub(crate) fn waiting_for_a_time(&self, now: Timestamp, boot_id: &str) -> Result<Vec<FutureTask>, Error> {
        let sql = format!(
            "SELECT id, not_before, updated_at > ?1 AS ahead, coalesce(\
               (SELECT r.ended_at FROM task_runs r WHERE r.task_id = tasks.id AND r.ended_at > ?1 \
                  AND r.ended_at < tasks.not_before ORDER BY r.id DESC LIMIT 1), \
               CASE WHEN schedule IS NOT NULL AND tick > ?1 AND tick < not_before THEN tick END) AS counted_from \
             FROM tasks WHERE status IN ('scheduled', 'review') AND not_before > ?1 AND NOT {PAUSES}"
        );
        self.conn.list("list the tasks that wait for a time", &sql, params![now, boot_id], |row| {
            Ok(FutureTask {
                id: row.get("id")?,
                not_before: row.get("not_before")?,
                counted_from: row.get("counted_from")?,
                is_changed_ahead: row.get("ahead")?,
            })
        })
    }

    /// Returns the tasks with an open request for an approval that ends after a time.
    pub(crate) fn requests_beyond(&self, time: Timestamp) -> Result<Vec<(TaskId, Timestamp)>, Error> {
        self.conn.list(
            "list the requests for approvals",
            "SELECT id, approval_until FROM tasks INDEXED BY tasks_approval_until \
             WHERE status = 'blocked' AND block_kind = 'approval' AND approval_until IS NOT NULL AND approval_until > ?1",
            [time],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Makes messages and events of plugins due now if their next try was computed while the clock was ahead. Returns
    /// their number.
    pub(crate) fn recall_tries(&self, now: Timestamp) -> Result<usize, Error> {
        let mut recalled = 0;
        for sql in [
            "UPDATE notify_outbox SET due_at = ?1 WHERE due_at > ?1 AND (created_at > ?1 OR failing_since > ?1)",
            "UPDATE plugin_cursors SET due_at = ?1 WHERE due_at > ?1 AND failing_since > ?1",
        ] {
            recalled += self.conn.count("recompute the next tries", sql, [now])?;
        }
        Ok(recalled)
    }

    /// Sets the stored times from which an age or an order is computed to `now`, if they lie after it. The creation
    /// times of tasks are shifted by the same amount instead, so that the tasks keep their order.
    pub(crate) fn recall_ages(&self, now: Timestamp) -> Result<(), Error> {
        let newest: Option<Timestamp> = self.conn.value(
            "read the newest task",
            "SELECT max(created_at) FROM tasks WHERE status <> 'archived'",
            [],
        )?;
        if let Some(newest) = newest.filter(|newest| *newest > now) {
            let sql = "UPDATE tasks SET created_at = created_at - ?2 + ?1 WHERE status <> 'archived' AND created_at > ?1";
            self.conn.run("recompute the ages of tasks", sql, params![now, newest])?;
        }
        for sql in [
            "UPDATE tasks SET updated_at = ?1 WHERE status <> 'archived' AND updated_at > ?1",
            "UPDATE holds SET created_at = ?1 WHERE created_at > ?1 AND ended_at IS NULL",
            "UPDATE missions SET moved_at = ?1 WHERE moved_at > ?1",
            "UPDATE notify_outbox SET created_at = min(created_at, ?1), failing_since = min(failing_since, ?1) \
               WHERE created_at > ?1 OR failing_since > ?1",
            "UPDATE plugin_cursors SET failing_since = ?1 WHERE failing_since > ?1",
            "UPDATE requests SET created_at = ?1 WHERE created_at > ?1",
        ] {
            self.conn.run("recompute ages", sql, [now])?;
        }
        Ok(())
    }

    /// Stores the latest correction of the board.
    pub(crate) fn put_clock_set(&self, set: &ClockSet) -> Result<(), Error> {
        let sql = "UPDATE meta SET clock_set = ?1 WHERE only = 1";
        self.conn.run("store the correction", sql, [to_json(set)?])
    }

    /// Returns the latest correction of the board.
    pub(crate) fn clock_set(&self) -> Result<Option<ClockSet>, Error> {
        let text: Option<String> =
            self.conn.value("read the correction", "SELECT clock_set FROM meta WHERE only = 1", [])?;
        // The record of another release may have another form, and is ignored.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}
