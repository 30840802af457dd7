//! Queries of approvals: requirements of tasks, and deadlines of requests.

use rusqlite::params;

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{ApprovalClass, TaskId};

impl Tx<'_> {
    /// Stores the deadline of a request for an approval; none for no deadline.
    pub(crate) fn set_approval_end(&self, id: &TaskId, until: Option<Timestamp>) -> Result<(), Error> {
        let sql = "UPDATE tasks SET approval_until = ?2 WHERE id = ?1";
        self.conn.run("store the end of the request", sql, params![id, until])
    }

    /// Makes a blocked task need an approval of a class.
    pub(crate) fn require_approval(&self, id: &TaskId, class: &ApprovalClass) -> Result<(), Error> {
        let sql = "UPDATE tasks SET approval = 'required', approval_class = ?2 WHERE id = ?1";
        self.conn.run("require the approval", sql, params![id, class])
    }

    /// Removes the need for an approval from a task.
    pub(crate) fn drop_approval(&self, id: &TaskId) -> Result<(), Error> {
        let sql = "UPDATE tasks SET approval = NULL, approval_class = NULL, approver = NULL, approval_until = NULL \
                   WHERE id = ?1";
        self.conn.run("drop the approval", sql, [id])
    }

    /// Returns at most `limit` tasks whose requests have expired.
    pub(crate) fn expired_approvals(&self, now: Timestamp, limit: u32) -> Result<Vec<TaskId>, Error> {
        self.conn.list(
            "look for requests that are over",
            "SELECT id FROM tasks INDEXED BY tasks_approval_until WHERE status = 'blocked' AND block_kind = 'approval' \
               AND approval_until IS NOT NULL AND approval_until <= ?1 ORDER BY approval_until, id LIMIT ?2",
            params![now, limit],
            |row| row.get(0),
        )
    }

    /// Returns the next deadline of a request.
    pub(crate) fn next_approval_end(&self) -> Result<Option<Timestamp>, Error> {
        self.conn.value(
            "read when the next request is over",
            "SELECT min(approval_until) FROM tasks INDEXED BY tasks_approval_until WHERE status = 'blocked' \
               AND block_kind = 'approval' AND approval_until IS NOT NULL",
            [],
        )
    }
}
