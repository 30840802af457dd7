//! What may run next: reads that stay flat however many tasks there are.
//!
//! `INDEXED BY` names the index that keeps a read flat; without statistics the planner would prefer a wider one.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::convert::{Step as _, text_or_none};
use crate::clock::Timestamp;
use crate::error::Error;
use crate::id::{TaskId, Tenant};
use crate::view::Candidate;

/// Returns the pair of tenant and assignee with ready tasks that follows `after`.
pub(crate) fn next_lane(conn: &Connection, after: (&str, &str)) -> Result<Option<(String, String)>, Error> {
    conn.prepare_cached(
        "SELECT tenant, assignee FROM tasks INDEXED BY tasks_ready WHERE status = 'ready' AND assignee IS NOT NULL \
         AND (tenant, assignee) > (?1, ?2) ORDER BY tenant, assignee LIMIT 1",
    )
    .and_then(|mut statement| {
        statement.query_row(params![after.0, after.1], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    })
    .step("look for ready tasks")
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate {
        task: row.get("id")?,
        assignee: row.get("assignee")?,
        tenant: text_or_none(row, "tenant")?,
        priority: row.get("priority")?,
        created_at: row.get("created_at")?,
        workspace: row.get("workspace")?,
        policy: row.get("policy")?,
    })
}

pub(crate) fn ready(conn: &Connection, lane: (&str, &str), limit: usize) -> Result<Vec<Candidate>, Error> {
    conn.prepare_cached(
        "SELECT id, assignee, tenant, priority, created_at, workspace, policy, max_runtime_us, branch_name, \
           creator_uid, worker_uid, skills FROM tasks INDEXED BY tasks_ready \
         WHERE status = 'ready' AND assignee IS NOT NULL AND tenant = ?1 AND assignee = ?2 \
         ORDER BY priority DESC, created_at, id LIMIT ?3",
    )
    .and_then(|mut statement| {
        statement
            .query_map(params![lane.0, lane.1, i64::try_from(limit).unwrap_or(i64::MAX)], candidate)?
            .collect()
    })
    .step("list ready tasks")
}

/// Returns the pair of tenant and reviewer with tasks in review that follows `after`.
pub(crate) fn next_review_lane(
    conn: &Connection,
    after: (&str, &str),
) -> Result<Option<(String, String)>, Error> {
    conn.prepare_cached(
        "SELECT tenant, reviewer FROM tasks INDEXED BY tasks_review WHERE status = 'review' \
         AND reviewer IS NOT NULL AND (tenant, reviewer) > (?1, ?2) ORDER BY tenant, reviewer LIMIT 1",
    )
    .and_then(|mut statement| {
        statement.query_row(params![after.0, after.1], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    })
    .step("look for tasks in review")
}

/// Lists the tasks that a profile is to review, under the policy of the work: a worker that names its reviewer must
/// not widen what runs on its files.
pub(crate) fn in_review(
    conn: &Connection,
    lane: (&str, &str),
    limit: usize,
    now: Timestamp,
) -> Result<Vec<Candidate>, Error> {
    conn.prepare_cached(
        "SELECT id, reviewer AS assignee, tenant, priority, created_at, workspace, coalesce(policy, (SELECT r.policy \
           FROM task_runs r WHERE r.task_id = tasks.id AND r.purpose = 'work' ORDER BY r.id DESC LIMIT 1)) AS policy \
         FROM tasks INDEXED BY tasks_review \
         WHERE status = 'review' AND reviewer IS NOT NULL AND tenant = ?1 AND reviewer = ?2 \
           AND ifnull(not_before, 0) <= ?4 ORDER BY priority DESC, created_at, id LIMIT ?3",
    )
    .and_then(|mut statement| {
        statement
            .query_map(params![lane.0, lane.1, i64::try_from(limit).unwrap_or(i64::MAX), now], candidate)?
            .collect()
    })
    .step("list tasks in review")
}

/// Returns when the next review that is held back may be tried again.
pub(crate) fn next_review(conn: &Connection, now: Timestamp) -> Result<Option<Timestamp>, Error> {
    conn.prepare_cached(
        "SELECT min(not_before) FROM tasks INDEXED BY tasks_review \
         WHERE status = 'review' AND reviewer IS NOT NULL AND not_before > ?1",
    )
    .and_then(|mut statement| statement.query_row([now], |row| row.get(0)))
    .step("read the next review")
}

/// Counts the open runs of each tenant.
pub(crate) fn running(conn: &Connection) -> Result<Vec<(String, u32)>, Error> {
    conn.prepare_cached("SELECT tenant, count(*) FROM task_runs WHERE ended_at IS NULL GROUP BY tenant")
        .and_then(|mut statement| statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .step("count open runs")
}

pub(crate) fn due(conn: &Connection, now: Timestamp, limit: u32) -> Result<Vec<TaskId>, Error> {
    conn.prepare_cached(
        "SELECT id FROM tasks INDEXED BY tasks_due WHERE status = 'scheduled' AND not_before <= ?1 ORDER BY not_before LIMIT ?2",
    )
    .and_then(|mut statement| statement.query_map(params![now, limit], |row| row.get(0))?.collect())
    .step("list due tasks")
}

pub(crate) fn next_due(conn: &Connection) -> Result<Option<Timestamp>, Error> {
    conn.prepare_cached("SELECT min(not_before) FROM tasks INDEXED BY tasks_due WHERE status = 'scheduled'")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .step("read the next due time")
}

pub(crate) fn oldest_ready_of(conn: &Connection, tenant: &Tenant) -> Result<Option<Timestamp>, Error> {
    conn.prepare_cached("SELECT min(updated_at) FROM tasks WHERE tenant = ?1 AND status = 'ready'")
        .and_then(|mut statement| statement.query_row([tenant.as_str()], |row| row.get(0)))
        .step("look for a tenant's oldest ready task")
}

pub(crate) fn oldest_ready(conn: &Connection) -> Result<Option<Timestamp>, Error> {
    conn.prepare_cached("SELECT min(updated_at) FROM tasks INDEXED BY tasks_ready_age WHERE status = 'ready'")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .step("look for the oldest ready task")
}
