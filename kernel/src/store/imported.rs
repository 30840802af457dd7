//! Queries of an import about rows that are imported already.

use rusqlite::params;

use super::convert::StoredTenant;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{Profile, TaskId, Tenant};

/// Policy under which imported tasks would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedPolicy {
    /// Assignee of the tasks, or their reviewer.
    pub assignee: Option<Profile>,
    /// Policy that the tasks name.
    pub policy: Option<String>,
    pub tasks: u64,
    pub first: TaskId,
}

/// Directory or repository of this host in which imported tasks would work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedPlace {
    pub workspace: String,
    pub tasks: u64,
    pub first: TaskId,
}

impl Tx<'_> {
    /// Reserves the ids of all tasks.
    pub(crate) fn reserve_ids_of_tasks(&self) -> Result<(), Error> {
        let sql = "INSERT OR IGNORE INTO task_ids (id) SELECT id FROM tasks ORDER BY id";
        self.conn.run("reserve the ids", sql, [])
    }

    /// Returns true if a task of the tenant has this idempotency key.
    pub(crate) fn is_key_used(&self, tenant: Option<&Tenant>, key: &str) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM tasks WHERE tenant = ?1 AND idempotency_key = ?2)";
        self.conn.value("look for the idempotency key", sql, params![StoredTenant(tenant), key])
    }

    /// Returns the directories and repositories in which imported tasks that are not over would work.
    pub(crate) fn imported_places(&self) -> Result<Vec<ImportedPlace>, Error> {
        self.conn.list(
            "list the workspaces",
            "SELECT workspace, count(*), min(id) FROM tasks \
             WHERE status NOT IN ('done', 'archived') AND workspace <> 'scratch' GROUP BY 1 ORDER BY 2 DESC, 1",
            [],
            |row| {
                let count: i64 = row.get(1)?;
                Ok(ImportedPlace {
                    workspace: row.get(0)?,
                    tasks: count.max(0).unsigned_abs(),
                    first: row.get(2)?,
                })
            },
        )
    }

    /// Returns the policies under which imported tasks would run, by assignee and policy. Tasks that are over count if they
    /// name a policy. A review runs under the policy of the work.
    pub(crate) fn imported_policies(&self) -> Result<Vec<ImportedPolicy>, Error> {
        self.conn.list(
            "list the policies",
            "SELECT CASE WHEN status = 'review' AND reviewer IS NOT NULL THEN reviewer ELSE assignee END AS performer, \
               CASE status WHEN 'review' THEN coalesce(policy, (SELECT r.policy FROM task_runs r \
                 WHERE r.task_id = t.id AND r.purpose = 'work' ORDER BY r.id DESC LIMIT 1)) ELSE policy END AS wanted, \
               count(*), min(id) \
             FROM tasks t WHERE status NOT IN ('done', 'archived') OR policy IS NOT NULL GROUP BY 1, 2 ORDER BY 4",
            [],
            |row| {
                let count: i64 = row.get(2)?;
                Ok(ImportedPolicy {
                    assignee: row.get(0)?,
                    policy: row.get(1)?,
                    tasks: count.max(0).unsigned_abs(),
                    first: row.get(3)?,
                })
            },
        )
    }

    /// Returns true if a task or one of its runs is assigned to this name.
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
