//! Counters of the writes of runs and of the data of tenants, whose cost does not grow with the amount of data.

use rusqlite::{Connection, Row, params};

use super::convert::StoredTenant;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::error::Error;
use crate::model::id::{RunId, Tenant};
use crate::model::quota::Bound;

/// Query that computes the counters of tenants from the rows.
const KEPT: &str = "SELECT tenant, sum(entries) AS entries, sum(bytes) AS bytes, sum(events) AS events FROM (\
     SELECT tenant, 1 AS entries, octet_length(title) + ifnull(octet_length(body), 0) AS bytes, 0 AS events FROM tasks \
     UNION ALL SELECT t.tenant, 1, octet_length(c.body), 0 FROM task_comments c JOIN tasks t ON t.id = c.task_id \
     UNION ALL SELECT t.tenant, 1, a.size, 0 FROM task_attachments a JOIN tasks t ON t.id = a.task_id \
     UNION ALL SELECT tenant, 0, 0, count(*) FROM task_events GROUP BY tenant) GROUP BY tenant";

/// Storage that a tenant uses on a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TenantData {
    /// Number of tasks, comments and files.
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) events: u64,
}

impl Tx<'_> {
    /// Adds to a counter of a run. Returns the new value.
    pub(crate) fn add_usage(&self, run: RunId, bound: Bound, more: u64) -> Result<u64, Error> {
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        let used: i64 = self.conn.fetch(
            "count what the run writes",
            "INSERT INTO run_counts (run_id, bound, used) VALUES (?1, ?2, ?3) \
             ON CONFLICT DO UPDATE SET used = used + excluded.used RETURNING used",
            params![run, bound.as_str(), more],
            |row| row.get("used"),
        )?;
        Ok(used.unsigned_abs())
    }

    /// Removes the counters of a finished run.
    pub(crate) fn forget_usage(&self, run: RunId) -> Result<(), Error> {
        self.conn.run("forget the run's counts", "DELETE FROM run_counts WHERE run_id = ?1", [run])
    }

    /// Returns the data of a tenant.
    pub(crate) fn kept_by_tenant(&self, tenant: Option<&Tenant>) -> Result<TenantData, Error> {
        let count = |row: &Row<'_>, at| row.get::<_, i64>(at).map(|count: i64| count.max(0).unsigned_abs());
        let sql = "SELECT entries, bytes, events FROM tenant_counts WHERE tenant = ?1";
        let stored = self.conn.find("read what the tenant keeps", sql, [StoredTenant(tenant)], |row| {
            Ok(TenantData { entries: count(row, 0)?, bytes: count(row, 1)?, events: count(row, 2)? })
        });
        Ok(stored?.unwrap_or_default())
    }

    /// Returns true if tenants other than this one have tasks on the board.
    pub(crate) fn has_other_tenants(&self, tenant: Option<&Tenant>) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM tenant_counts WHERE tenant <> ?1 AND entries > 0)";
        self.conn.value("look for other tenants", sql, [StoredTenant(tenant)])
    }
}

/// Returns the number of wrong counters of tenants. Reads all rows.
pub(crate) fn wrong(conn: &Connection) -> rusqlite::Result<i64> {
    let stored_counts = "SELECT tenant, entries, bytes, events FROM tenant_counts \
                WHERE entries <> 0 OR bytes <> 0 OR events <> 0";
    conn.query_row(
        &format!(
            "SELECT count(*) FROM (SELECT * FROM ({KEPT} EXCEPT {stored_counts}) UNION SELECT * FROM ({stored_counts} EXCEPT {KEPT}))"
        ),
        [],
        |row| row.get(0),
    )
}

/// Recounts the data of all tenants.
pub(super) fn recount(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM tenant_counts", [])?;
    conn.execute(&format!("INSERT INTO tenant_counts (tenant, entries, bytes, events) {KEPT}"), [])?;
    Ok(())
}

/// Returns the number of run counters of a board.
#[cfg(test)]
pub(crate) fn counted(board: &std::path::Path) -> i64 {
    let conn = Connection::open(board).unwrap();
    conn.query_row("SELECT count(*) FROM run_counts", [], |row| row.get(0)).unwrap()
}

/// Removes all counters of runs.
#[cfg(test)]
pub(crate) fn lose(board: &std::path::Path) {
    Connection::open(board).unwrap().execute("DELETE FROM run_counts", []).unwrap();
}
