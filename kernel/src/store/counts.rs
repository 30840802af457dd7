//! Derived tables that triggers maintain: numbers of tasks, and the first ready task of each line. With them, the cost
//! of a count does not depend on the number of tasks.

use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::error::Error;
use crate::model::id::{Profile, Tenant};
use crate::model::status::Status;

/// Query that computes the counters from the tasks.
const COUNTED: &str =
    "SELECT ifnull(assignee, '') AS assignee, status, count(*) AS tasks FROM tasks GROUP BY 1, 2";

/// Query that computes the first ready task of each line from the tasks.
const HEADS: &str = "SELECT tenant, assignee, line, priority, created_at, id FROM (SELECT *, row_number() OVER (\
     PARTITION BY tenant, assignee, line ORDER BY priority DESC, created_at, id) AS place FROM tasks \
     WHERE status = 'ready' AND assignee IS NOT NULL AND line <> '') WHERE place = 1";

/// Derived tables, which no export of a board contains.
pub(super) const DERIVED: [&str; 3] = ["task_counts", "tenant_counts", "line_heads"];

impl Tx<'_> {
    /// Returns the number of ready tasks with an assignee.
    pub(crate) fn count_ready(&self) -> Result<u64, Error> {
        let sql = "SELECT ifnull(sum(tasks), 0) FROM task_counts WHERE status = 'ready' AND assignee <> ''";
        self.conn
            .value("count ready tasks", sql, [])
            .map(|count: i64| u64::try_from(count).unwrap_or_default())
    }

    /// Returns the number of tasks in each status, optionally of one tenant or assignee only. For a tenant, this reads
    /// all tasks of the tenant.
    pub(crate) fn count_by_status(
        &self,
        tenant: Option<&Tenant>,
        assignee: Option<&Profile>,
    ) -> Result<Vec<(Status, i64)>, Error> {
        let sql = match (tenant, assignee) {
            (None, None) => "SELECT status, sum(tasks) FROM task_counts WHERE tasks <> 0 GROUP BY 1",
            (None, Some(_)) => {
                "SELECT status, sum(tasks) FROM task_counts WHERE tasks <> 0 AND assignee = ?1 GROUP BY 1"
            }
            (Some(_), None) => "SELECT status, count(*) FROM tasks WHERE tenant = ?1 GROUP BY 1",
            (Some(_), Some(_)) => {
                "SELECT status, count(*) FROM tasks WHERE tenant = ?1 AND assignee = ?2 GROUP BY 1"
            }
        };
        let of = tenant.map(Tenant::as_str).into_iter().chain(assignee.map(Profile::as_str));
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.conn.list("count tasks by status", sql, params_from_iter(of), read)
    }

    /// Returns the first tenants with tasks whose names begin with a text, ordered by name.
    pub(crate) fn tenants_from(&self, beginning: &str, limit: u32) -> Result<Vec<String>, Error> {
        let sql = "SELECT tenant FROM tenant_counts WHERE tenant >= ?1 AND substr(tenant, 1, length(?1)) = ?1 \
                   AND tenant <> '' AND entries > 0 ORDER BY tenant LIMIT ?2";
        self.conn.list("list tenants", sql, (beginning, limit), |row| row.get(0))
    }

    /// Returns the number of tasks by assignee and status, for at most `names` assignees after a given name. For a
    /// tenant, this reads all tasks of the tenant.
    pub(crate) fn count_by_assignee(
        &self,
        tenant: Option<&Tenant>,
        after: &str,
        names: usize,
    ) -> Result<Vec<(String, Status, i64)>, Error> {
        let sql = match tenant {
            None => {
                "SELECT assignee, status, tasks FROM task_counts WHERE tasks <> 0 AND assignee IN (\
                 SELECT DISTINCT assignee FROM task_counts WHERE tasks <> 0 AND assignee > ?1 ORDER BY 1 LIMIT ?2)"
            }
            Some(_) => {
                "SELECT assignee, status, count(*) FROM tasks WHERE tenant = ?3 AND assignee IN (\
                 SELECT DISTINCT assignee FROM tasks WHERE tenant = ?3 AND assignee > ?1 ORDER BY 1 LIMIT ?2) \
                 GROUP BY 1, 2"
            }
        };
        let names = i64::try_from(names).unwrap_or(i64::MAX);
        let tenant = tenant.map(Tenant::as_str);
        let mut asked: Vec<&dyn ToSql> = vec![&after, &names];
        asked.extend(tenant.as_ref().map(|tenant| -> &dyn ToSql { tenant }));
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        self.conn.list("count tasks by assignee", sql, &*asked, read)
    }
}

/// Returns the number of counters and of first ready tasks that differ from the tasks. Reads all tasks.
pub(crate) fn wrong(conn: &Connection) -> rusqlite::Result<i64> {
    let counted = "SELECT assignee, status, tasks FROM task_counts WHERE tasks <> 0";
    let heads = "SELECT tenant, assignee, line, priority, created_at, task FROM line_heads";
    let differ = |kept: &str, meant: &str| {
        format!(
            "(SELECT count(*) FROM (SELECT * FROM ({meant} EXCEPT {kept}) UNION SELECT * FROM ({kept} EXCEPT {meant})))"
        )
    };
    let (counts, heads) = (differ(counted, COUNTED), differ(heads, HEADS));
    conn.query_row(&format!("SELECT {counts} + {heads}"), [], |row| row.get(0))
}

/// Computes the counters and the first ready tasks of the lines anew. Another module computes the use of tenants.
pub(super) fn recount(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM task_counts", [])?;
    conn.execute(&format!("INSERT INTO task_counts (assignee, status, tasks) {COUNTED}"), [])?;
    conn.execute("DELETE FROM line_heads", [])?;
    conn.execute(
        &format!("INSERT INTO line_heads (tenant, assignee, line, priority, created_at, task) {HEADS}"),
        [],
    )?;
    Ok(())
}
