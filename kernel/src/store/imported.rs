//! What an import of another program's board asks of rows that are in already.

use rusqlite::params;

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::TaskId;

impl Tx<'_> {
    /// Returns whether a task is assigned to this name, or a run of it was.
    pub(crate) fn has_worker(&self, task: &TaskId, name: &str) -> Result<bool, Error> {
        self.conn.value(
            "look for the author",
            "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND assignee = ?2) \
                   OR EXISTS (SELECT 1 FROM task_runs WHERE task_id = ?1 AND profile = ?2)",
            params![task, name],
        )
    }

    /// Keeps a sign of life with the newest run of a task. Returns whether it has one.
    pub(crate) fn keep_heartbeat(&self, task: &TaskId, at: Timestamp) -> Result<bool, Error> {
        self.conn
            .count(
                "record the heartbeat",
                "UPDATE task_runs SET last_heartbeat_at = max(ifnull(last_heartbeat_at, 0), ?2) \
                 WHERE id = (SELECT max(id) FROM task_runs WHERE task_id = ?1)",
                params![task, at],
            )
            .map(|rows| rows > 0)
    }
}
