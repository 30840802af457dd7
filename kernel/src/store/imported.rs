//! Queries of an import about rows that are imported already.

use rusqlite::params;

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::TaskId;

impl Tx<'_> {
    /// True if a task or one of its runs is assigned to this name.
    pub(crate) fn has_worker(&self, task: &TaskId, name: &str) -> Result<bool, Error> {
        self.conn.value(
            "look for the author",
            "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND assignee = ?2) \
                   OR EXISTS (SELECT 1 FROM task_runs WHERE task_id = ?1 AND profile = ?2)",
            params![task, name],
        )
    }

    /// Stores a heartbeat with the newest run of a task. Returns false if the task has no run.
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
