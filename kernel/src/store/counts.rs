//! How many tasks there are: rows that triggers keep, so that a count costs the same however many there are.

use rusqlite::Connection;

use super::convert::Step as _;
use crate::error::Error;
use crate::id::Tenant;

/// What the triggers keep, out of the tasks themselves.
const COUNTED: &str =
    "SELECT ifnull(assignee, '') AS assignee, status, count(*) AS tasks FROM tasks GROUP BY 1, 2";

/// Returns the number of tasks by assignee and status.
pub(crate) fn all(conn: &Connection) -> Result<Vec<(Option<String>, String, i64)>, Error> {
    conn.prepare_cached("SELECT nullif(assignee, ''), status, tasks FROM task_counts WHERE tasks <> 0")
        .and_then(|mut statement| {
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })
        .step("count tasks")
}

/// Returns the number of a tenant's tasks by assignee and status.
pub(crate) fn of_tenant(
    conn: &Connection,
    tenant: &Tenant,
) -> Result<Vec<(Option<String>, String, i64)>, Error> {
    conn.prepare_cached("SELECT assignee, status, count(*) FROM tasks WHERE tenant = ?1 GROUP BY 1, 2")
        .and_then(|mut statement| {
            statement
                .query_map([tenant.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect()
        })
        .step("count a tenant's tasks")
}

/// Returns how many counts differ from the tasks. Reads every task.
pub(crate) fn wrong(conn: &Connection) -> rusqlite::Result<i64> {
    let kept = "SELECT assignee, status, tasks FROM task_counts WHERE tasks <> 0";
    conn.query_row(
        &format!(
            "SELECT count(*) FROM (SELECT * FROM ({COUNTED} EXCEPT {kept}) UNION SELECT * FROM ({kept} EXCEPT {COUNTED}))"
        ),
        [],
        |row| row.get(0),
    )
}

/// Counts the tasks anew.
pub(super) fn recount(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM task_counts", [])?;
    conn.execute(&format!("INSERT INTO task_counts (assignee, status, tasks) {COUNTED}"), [])?;
    Ok(())
}
