//! Rows of one tenant for its export: the rows that belong to its tasks, without references to other tenants.

use std::collections::BTreeSet;

use rusqlite::Row;

use super::convert::StoredTenant;
use super::rows;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::cell::Cell;
use crate::model::error::Error;
use crate::model::id::{Digest, Tenant};

const TASKS: &str = "(SELECT id FROM tasks WHERE tenant = ?1)";
const RUNS: &str = "(SELECT r.id FROM task_runs r JOIN tasks t ON t.id = r.task_id WHERE t.tenant = ?1)";
/// Missions of the tenant's tasks, named after their first tasks.
const MISSIONS: &str = "(SELECT id FROM tasks WHERE tenant = ?1 UNION \
     SELECT mission FROM tasks WHERE tenant = ?1 AND mission NOT IN (SELECT id FROM tasks WHERE tenant <> ?1))";

/// Returns the condition for a tenant's rows of a table; none for a table of the board or the host. A table that is not
/// listed is left out.
fn condition(table: &str) -> Option<String> {
    Some(match table {
        "tasks" => "tenant = ?1".to_owned(),
        "task_ids" => format!("id IN {TASKS}"),
        "task_links" => format!("parent_id IN {TASKS} AND child_id IN {TASKS}"),
        "task_comments" | "task_events" | "folded_states" | "task_runs" | "task_attachments"
        | "notify_subs" | "chat_messages" | "delays" | "run_usage" | "run_messages" => {
            format!("task_id IN {TASKS}")
        }
        "run_counts" | "run_egress" => format!("run_id IN {RUNS}"),
        "missions" => format!("name IN {MISSIONS}"),
        "holds" => format!(
            "(scope = 'tenant' AND name = ?1) OR (scope = 'task' AND name IN {TASKS}) \
               OR (scope = 'mission' AND name IN {MISSIONS})"
        ),
        "mentions" => format!(
            "task_id IN {TASKS} AND comment_id IN (SELECT c.id FROM task_comments c WHERE c.task_id IN {TASKS})"
        ),
        "proposals" => format!("task_id IN {TASKS} AND subject IN {TASKS}"),
        "spend" => format!("tenant = ?1 AND (mission = '' OR mission IN {MISSIONS})"),
        "day_usage" => "scope = 'tenant' AND name = ?1".to_owned(),
        // The start of the log, without which the states of folded tasks have no meaning.
        "event_horizon" => "?1 IS NOT NULL".to_owned(),
        _ => return None,
    })
}

/// Returns the expression for a column: a reference to another tenant becomes NULL, and so does a secret.
fn column(table: &str, name: &str) -> String {
    let only = |of: &str| format!("CASE WHEN \"{name}\" IN {of} THEN \"{name}\" END");
    match (table, name) {
        ("tasks", "creator_run" | "unchecked_run" | "current_run_id")
        | ("task_comments" | "task_events" | "task_attachments", "run_id")
        | ("holds", "run_id" | "probe_run") => only(RUNS),
        ("tasks", "mission") => only(MISSIONS),
        ("tasks", "creator_task") | ("holds", "met_by_task") => only(TASKS),
        ("task_runs", "token_hash") => "NULL".to_owned(),
        _ => format!("\"{name}\""),
    }
}

impl Tx<'_> {
    /// Returns true if any task belongs to this tenant.
    pub(crate) fn has_tenant(&self, tenant: &Tenant) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM tasks WHERE tenant = ?1)";
        self.conn.value("look for the tenant", sql, [StoredTenant(Some(tenant))])
    }

    /// Returns true if any task of the board belongs to a tenant, or did: the counts of a tenant outlast its tasks.
    pub(crate) fn has_tenants(&self) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM tenant_counts WHERE tenant > '')";
        self.conn.value("look for tenants", sql, [])
    }

    /// Calls `each` for each of a tenant's rows of a table, in the order of its key. Returns false for a table without
    /// tenant rows.
    pub(crate) fn each_row_of(
        &self,
        tenant: &Tenant,
        table: &str,
        columns: &[String],
        each: impl FnMut(Vec<Cell>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let Some(condition) = condition(table) else { return Ok(false) };
        let list = columns.iter().map(|name| column(table, name)).collect::<Vec<_>>().join(", ");
        let read = |row: &Row<'_>| (0..columns.len()).map(|at| row.get_ref(at).map(Cell::from)).collect();
        let sql = format!("SELECT {list} FROM \"{table}\" WHERE {condition} ORDER BY {}", rows::key(columns));
        self.conn.scan("export a table", &sql, [StoredTenant(Some(tenant))], read, each)?;
        Ok(true)
    }

    /// Returns the digests of the attachments of a tenant's tasks.
    pub(crate) fn digests_of(&self, tenant: &Tenant) -> Result<BTreeSet<Digest>, Error> {
        let sql = format!("SELECT DISTINCT sha256 FROM task_attachments WHERE task_id IN {TASKS}");
        let digests: Vec<Digest> =
            self.conn
                .list("list the attached files", &sql, [StoredTenant(Some(tenant))], |row| row.get(0))?;
        Ok(digests.into_iter().collect())
    }
}
