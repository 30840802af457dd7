//! Use of resources by the runs of a tenant, computed from their rows.

use rusqlite::Row;
use serde_json::Value;

use super::convert::StoredTenant;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::Tenant;
use crate::model::tenant_use::RunsUse;

fn read(row: &Row<'_>) -> rusqlite::Result<(Timestamp, RunsUse)> {
    let usage: Option<String> = row.get("usage")?;
    let usage: Value = usage.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let number_of = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let count = |name: &str| row.get::<_, i64>(name).map(|count| count.max(0).unsigned_abs());
    let peak = match number_of("memory_peak_bytes") {
        0 => number_of("max_rss_kib").saturating_mul(1024),
        peak => peak,
    };
    let used = RunsUse {
        runs: 1,
        cpu_us: number_of("user_us").saturating_add(number_of("system_us")),
        peak_memory_bytes: peak,
        read_bytes: number_of("read_bytes"),
        written_bytes: number_of("written_bytes"),
        tokens: count("tokens")?,
        cost_micros: count("cost")?,
    };
    Ok((row.get("started_at")?, used))
}

impl Tx<'_> {
    /// Calls `each` for each run of a tenant's tasks, with its start and its use. Reads all these runs.
    pub(crate) fn each_use_of(
        &self,
        tenant: &Tenant,
        mut each: impl FnMut(Timestamp, RunsUse),
    ) -> Result<(), Error> {
        let sql = "SELECT r.started_at, r.usage, ifnull(u.input_tokens + u.output_tokens, 0) AS tokens, \
               ifnull(u.cost_micros, 0) AS cost FROM tasks t JOIN task_runs r ON r.task_id = t.id \
               LEFT JOIN run_usage u ON u.run_id = r.id WHERE t.tenant = ?1";
        self.conn.scan(
            "add up what the tenant used",
            sql,
            [StoredTenant(Some(tenant))],
            read,
            |(at, used)| {
                each(at, used);
                Ok(())
            },
        )
    }

    /// Returns the number of attachments of a tenant's tasks, and their bytes.
    pub(crate) fn attached_by(&self, tenant: &Tenant) -> Result<(u64, u64), Error> {
        let sql = "SELECT count(*), ifnull(sum(a.size), 0) FROM tasks t JOIN task_attachments a ON a.task_id = t.id \
               WHERE t.tenant = ?1";
        let count = |row: &Row<'_>, at| row.get::<_, i64>(at).map(|count| count.max(0).unsigned_abs());
        self.conn.fetch("count the tenant's files", sql, [StoredTenant(Some(tenant))], |row| {
            Ok((count(row, 0)?, count(row, 1)?))
        })
    }
}
