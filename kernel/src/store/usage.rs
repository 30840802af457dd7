//! What runs have written and tenants keep: counters that cost the same however much there is.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::convert::Step as _;
use crate::error::Error;
use crate::id::RunId;
use crate::quota::Bound;

/// What the tenants' triggers keep, out of the rows themselves.
const KEPT: &str = "SELECT tenant, count(*) AS entries, sum(bytes) AS bytes FROM (\
     SELECT tenant, octet_length(title) + ifnull(octet_length(body), 0) AS bytes FROM tasks \
     UNION ALL SELECT t.tenant, octet_length(c.body) FROM task_comments c JOIN tasks t ON t.id = c.task_id \
     UNION ALL SELECT t.tenant, a.size FROM task_attachments a JOIN tasks t ON t.id = a.task_id) GROUP BY tenant";

/// Adds to what a run has used. Returns how much that is now.
pub(crate) fn add(conn: &Connection, run: RunId, bound: Bound, more: u64) -> Result<u64, Error> {
    let more = i64::try_from(more).unwrap_or(i64::MAX);
    let used: i64 = conn
        .prepare_cached(
            "INSERT INTO run_counts (run_id, bound, used) VALUES (?1, ?2, ?3) \
             ON CONFLICT DO UPDATE SET used = used + excluded.used RETURNING used",
        )
        .and_then(|mut statement| {
            statement.query_row(params![run, bound.as_str(), more], |row| row.get("used"))
        })
        .step("count what the run writes")?;
    Ok(used.unsigned_abs())
}

/// Forgets what a run has used: it is over.
pub(crate) fn forget(conn: &Connection, run: RunId) -> Result<(), Error> {
    conn.prepare_cached("DELETE FROM run_counts WHERE run_id = ?1")
        .and_then(|mut statement| statement.execute([run]))
        .step("forget the run's counts")
        .map(|_| ())
}

/// Returns the entries and bytes that a tenant keeps.
pub(crate) fn of_tenant(conn: &Connection, tenant: &str) -> Result<(u64, u64), Error> {
    let found: Option<(i64, i64)> = conn
        .prepare_cached("SELECT entries, bytes FROM tenant_counts WHERE tenant = ?1")
        .and_then(|mut statement| {
            statement.query_row([tenant], |row| Ok((row.get("entries")?, row.get("bytes")?))).optional()
        })
        .step("read what the tenant keeps")?;
    let (entries, bytes) = found.unwrap_or_default();
    Ok((entries.max(0).unsigned_abs(), bytes.max(0).unsigned_abs()))
}

/// Returns how many counts of tenants differ from the rows. Reads every row.
pub(crate) fn wrong(conn: &Connection) -> rusqlite::Result<i64> {
    let told = "SELECT tenant, entries, bytes FROM tenant_counts WHERE entries <> 0 OR bytes <> 0";
    conn.query_row(
        &format!(
            "SELECT count(*) FROM (SELECT * FROM ({KEPT} EXCEPT {told}) UNION SELECT * FROM ({told} EXCEPT {KEPT}))"
        ),
        [],
        |row| row.get(0),
    )
}

/// Counts what tenants keep anew.
pub(super) fn recount(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM tenant_counts", [])?;
    conn.execute(&format!("INSERT INTO tenant_counts (tenant, entries, bytes) {KEPT}"), [])?;
    Ok(())
}
