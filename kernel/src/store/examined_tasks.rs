//! Query of the tasks that the diagnosis examines.

use std::collections::BTreeMap;

use rusqlite::{Row, params};

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::examined_task::ExaminedTask;
use crate::model::id::TaskId;

/// Largest number of examined tasks of a kind.
const MOST: u32 = 100;

/// Facts about a task. `since` is the time of the last transition. If its event was folded, the last change of the row is
/// the best estimate.
const FACTS: &str = "SELECT t.id, t.title, t.status, t.assignee, t.consecutive_failures, t.failed_checks, t.last_failure_error, \
       t.block_kind, t.block_reason, t.nonspawnable, t.not_before, t.mission, \
       t.last_block_kind IS NOT NULL OR t.status IN ('blocked', 'ready', 'triage') AS was_blocked, \
       coalesce((SELECT max(e.created_at) FROM task_events e WHERE e.task_id = t.id AND e.change IS NOT NULL), \
         t.updated_at) AS since \
     FROM tasks t";

/// Kinds of tasks that may have a problem, each read from an index that has no other tasks: the ready tasks that have
/// changed least recently, the most important blocked tasks, the tasks with the most failures, the tasks that were blocked
/// before, and the tasks that should have started first.
const KINDS: [&str; 5] = [
    "INDEXED BY tasks_updated WHERE t.status = 'ready' AND ?1 NOT NULL ORDER BY t.updated_at LIMIT ?2",
    "INDEXED BY tasks_status WHERE t.status = 'blocked' AND ?1 NOT NULL \
       ORDER BY t.priority DESC, t.created_at, t.id LIMIT ?2",
    "INDEXED BY tasks_troubled WHERE t.status NOT IN ('done', 'archived') \
       AND (t.consecutive_failures > 0 OR t.last_block_kind IS NOT NULL) \
       AND t.consecutive_failures > 0 AND ?1 NOT NULL ORDER BY t.consecutive_failures DESC LIMIT ?2",
    "INDEXED BY tasks_troubled WHERE t.status NOT IN ('done', 'archived') \
       AND (t.consecutive_failures > 0 OR t.last_block_kind IS NOT NULL) AND t.consecutive_failures = 0 \
       AND t.status IN ('triage', 'todo', 'scheduled', 'running', 'review') AND ?1 NOT NULL LIMIT ?2",
    "INDEXED BY tasks_due WHERE t.status = 'scheduled' AND t.not_before <= ?1 ORDER BY t.not_before LIMIT ?2",
];

impl Tx<'_> {
    /// Returns the tasks to examine, by id: one, or of each kind as many as a page has.
    pub(crate) fn examined_tasks(
        &self,
        task: Option<&TaskId>,
        now: Timestamp,
    ) -> Result<Vec<ExaminedTask>, Error> {
        let step = "look for what is wrong";
        if let Some(task) = task {
            let sql = format!(
                "{FACTS} WHERE t.id = ?1 AND t.status NOT IN ('done', 'archived') \
                   AND (t.consecutive_failures > 0 OR t.last_block_kind IS NOT NULL \
                     OR t.status IN ('blocked', 'ready', 'scheduled'))"
            );
            return self.conn.list(step, &sql, [task], read);
        }
        let mut examined = BTreeMap::new();
        for kind in KINDS {
            let sql = format!("{FACTS} {kind}");
            let found: Vec<ExaminedTask> = self.conn.list(step, &sql, params![now, MOST], read)?;
            examined.extend(found.into_iter().map(|task| (task.id.clone(), task)));
        }
        Ok(examined.into_values().collect())
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<ExaminedTask> {
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
}
