//! Query of the tasks that the diagnosis examines.

use rusqlite::params;

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::examined_task::ExaminedTask;
use crate::model::id::TaskId;

/// Largest number of examined tasks.
const MOST: u32 = 10_000;

impl Tx<'_> {
    /// Returns the tasks to examine: one, or all.
    pub(crate) fn examined_tasks(
        &self,
        task: Option<&TaskId>,
        now: Timestamp,
    ) -> Result<Vec<ExaminedTask>, Error> {
        // `since` is the time of the last transition. If its event was folded, the last change of the row is the best
        // estimate.
        self.conn.list("look for what is wrong", "SELECT t.id, t.title, t.status, t.assignee, t.consecutive_failures, t.failed_checks, t.last_failure_error, t.block_kind, t.block_reason, \
           t.nonspawnable, t.not_before, t.mission, \
           t.last_block_kind IS NOT NULL OR t.status IN ('blocked', 'ready', 'triage') AS was_blocked, \
           coalesce((SELECT max(e.created_at) FROM task_events e WHERE e.task_id = t.id AND e.change IS NOT NULL), \
             t.updated_at) AS since \
         FROM tasks t WHERE t.status IN ('triage', 'todo', 'scheduled', 'ready', 'running', 'review', 'blocked') \
           AND (?1 IS NULL OR t.id = ?1) \
           AND (t.consecutive_failures > 0 OR t.last_block_kind IS NOT NULL OR t.status IN ('blocked', 'ready') \
             OR (t.status = 'scheduled' AND t.not_before <= ?2)) \
         ORDER BY t.id LIMIT ?3", params![task, now, MOST], |row| {
                Ok(ExaminedTask {
                    id: row.get("id")?,
                    title: row.get("title")?,
                    status: row.get("status")?,
                    assignee: row.get("assignee")?,
                    failures: row.get("consecutive_failures")?,
                    failed_checks: row.get("failed_checks")?,
                    error: row.get("last_failure_error")?,
                    block_kind: row.get("block_kind")?,
                    block_reason: row.get("block_reason")?,
                    nonspawnable: row.get("nonspawnable")?,
                    not_before: row.get("not_before")?,
                    mission: row.get("mission")?,
                    was_blocked: row.get("was_blocked")?,
                    since: row.get("since")?,
                })
            })
    }
}
