//! Import of all rows of a board: without the indices and triggers, which would cost more than the rows, and which are made
//! at the end from all rows at once.

use rusqlite::Connection;

use super::convert::Step as _;
use super::tx::Tx;
use super::{counts, open, usage};
use crate::model::error::Error;

/// Indices of which an import itself makes use. A unique index refuses a row when it is imported, so these stay too.
const USED: [&str; 2] = ["task_links_child", "task_runs_task"];

impl Tx<'_> {
    /// Imports the rows of an empty board by `rows`. An error leaves the board without indices and triggers, so the caller
    /// has to undo the transaction.
    pub(crate) fn import_rows<T>(&self, rows: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let step = "begin the import";
        open::cache(self.conn, open::BULK_CACHE).step(step)?;
        // The indices are sorted in files. Where SQLite cannot change this now, they are sorted in memory.
        drop(self.conn.pragma_update(None, "temp_store", "FILE"));
        let imported = without_derived(self.conn).step(step).and_then(|derived| {
            let imported = rows()?;
            derive(self.conn, &derived).step("make the indices of the import")?;
            Ok(imported)
        });
        drop(self.conn.pragma_update(None, "temp_store", "MEMORY"));
        open::cache(self.conn, open::CACHE).step("end the import")?;
        imported
    }
}

/// Removes the indices and triggers of a board. Returns their definitions, the indices first.
fn without_derived(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL \
           AND (type = 'trigger' OR (type = 'index' AND sql NOT LIKE 'CREATE UNIQUE %')) ORDER BY type, rowid",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut objects = rows.collect::<rusqlite::Result<Vec<(String, String, String)>>>()?;
    objects.retain(|(_, name, _)| !USED.contains(&name.as_str()));
    for (kind, name, _) in &objects {
        conn.execute_batch(&format!("DROP {kind} \"{name}\""))?;
    }
    Ok(objects.into_iter().map(|(_, _, definition)| definition).collect())
}

/// Makes the indices and triggers again, and counts what the triggers would have counted.
fn derive(conn: &Connection, derived: &[String]) -> rusqlite::Result<()> {
    counts::recount(conn)?;
    usage::recount(conn)?;
    derived.iter().try_for_each(|definition| conn.execute_batch(definition))
}
