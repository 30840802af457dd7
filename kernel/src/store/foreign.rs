//! Reads the tables of another program's database from a copy, row by row.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::open_error::{OpenError, sqlite};
use super::rows::{columns, is_plain, tables};
use super::time_limit;
use crate::model::cell::Cell;
use crate::model::error::Error;

/// Row by its columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForeignRow {
    names: Arc<[String]>,
    cells: Vec<Cell>,
}

impl ForeignRow {
    /// Returns the value in a column; none if the table has no such column.
    pub(crate) fn get(&self, column: &str) -> Option<&Cell> {
        self.names.iter().position(|name| name == column).and_then(|at| self.cells.get(at))
    }

    /// Returns the values, in the order of the columns.
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }
}

/// Database of another program.
pub(crate) struct Foreign {
    conn: Connection,
    /// Path that messages name.
    path: PathBuf,
    /// Limit on the time of each read, which grows with the file.
    time: Duration,
    /// Wanted tables that exist, with their columns.
    tables: Vec<(String, Vec<String>)>,
    /// Names of the other tables.
    pub(crate) others: Vec<String>,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Foreign {
    /// Opens the database copy at `copy`; messages name `path`. The first wanted table must exist.
    pub(crate) fn open(copy: &Path, path: &Path, wanted: &[&str]) -> Result<Self, OpenError> {
        let fail = |error| sqlite("read", path, error);
        // Writable, so that SQLite applies the copied log.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(copy, flags).map_err(fail)?;
        // Its statements can be slow by design: a generated column computes anything.
        let size = std::fs::metadata(copy).map_or(0, |meta| meta.len());
        let time = time_limit::TIME + Duration::from_secs(size >> 20);
        time_limit::limit(&conn, path, time)?;
        let sound: String = conn.pragma_query_value(None, "quick_check", |row| row.get(0)).map_err(fail)?;
        if sound != "ok" {
            return Err(OpenError::Corrupt { path: path.to_owned(), detail: sound });
        }
        Self::of(conn, path, time, wanted)
    }

    fn of(conn: Connection, path: &Path, time: Duration, wanted: &[&str]) -> Result<Self, OpenError> {
        let fail = |error| sqlite("read", path, error);
        let present = tables(&conn).map_err(fail)?;
        let mut known = Vec::new();
        for table in wanted.iter().filter(|table| present.iter().any(|name| name == *table)) {
            // A virtual table can run any view of the file.
            if !is_plain(&conn, table).map_err(fail)? {
                return Err(OpenError::Corrupt {
                    path: path.to_owned(),
                    detail: format!("its table {table} is virtual"),
                });
            }
            known.push(((*table).to_owned(), columns(&conn, table).map_err(fail)?));
        }
        if wanted.first().is_some_and(|first| known.iter().all(|(name, _)| name != first)) {
            return Err(OpenError::NotABoard { path: path.to_owned(), application_id: 0 });
        }
        let others = present.into_iter().filter(|name| !wanted.contains(&name.as_str())).collect();
        Ok(Foreign { conn, path: path.to_owned(), time, tables: known, others })
    }

    /// Returns the wanted tables that exist, with their columns.
    pub(crate) fn tables(&self) -> &[(String, Vec<String>)] {
        &self.tables
    }

    /// Calls `each` for every row of a table, in the order of the rows, with the values of the columns that `wanted`
    /// accepts. A table that does not exist has no rows.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the table cannot be read, and the errors of `each`.
    pub(crate) fn each(
        &self,
        table: &str,
        wanted: impl Fn(&str) -> bool,
        mut each: impl FnMut(&ForeignRow) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some((_, columns)) = self.tables.iter().find(|(name, _)| name == table) else { return Ok(()) };
        let names: Arc<[String]> = columns.iter().filter(|name| wanted(name)).cloned().collect();
        let list: Vec<String> =
            names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
        let list = if list.is_empty() { "NULL".to_owned() } else { list.join(", ") };
        time_limit::limit(&self.conn, &self.path, self.time).map_err(|error| unreadable(table, &error))?;
        let fail = |error: rusqlite::Error| unreadable(table, &error);
        let sql = format!("SELECT {list} FROM \"{table}\" ORDER BY rowid");
        let mut statement = self.conn.prepare(&sql).map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        let mut read = ForeignRow { cells: Vec::with_capacity(names.len()), names };
        while let Some(row) = rows.next().map_err(fail)? {
            read.cells.clear();
            for at in 0..read.names.len() {
                read.cells.push(row.get_ref(at).map_err(fail)?.into());
            }
            each(&read)?;
        }
        Ok(())
    }
}

fn unreadable(table: &str, error: &dyn fmt::Display) -> Error {
    Error::invalid("file", format!("its table {table} cannot be read: {error}"), "nothing was imported")
}

#[cfg(test)]
impl Foreign {
    /// Makes a database in memory that has rows of any values.
    pub(crate) fn of_rows(
        tables: &std::collections::BTreeMap<String, Vec<std::collections::BTreeMap<String, Cell>>>,
        wanted: &[&str],
    ) -> rusqlite::Result<Self> {
        let conn = Connection::open_in_memory()?;
        let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
        for (table, rows) in tables {
            let columns: std::collections::BTreeSet<&String> =
                rows.iter().flat_map(|row| row.keys()).collect();
            let list: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
            let list = if list.is_empty() { "nothing".to_owned() } else { list.join(", ") };
            conn.execute(&format!("CREATE TABLE {} ({list})", quoted(table)), [])?;
            let marks = vec!["?"; columns.len().max(1)].join(", ");
            for row in rows {
                let cells = columns.iter().map(|name| row.get(*name).cloned().unwrap_or(Cell::Null));
                let cells: Vec<Cell> = cells.chain(columns.is_empty().then_some(Cell::Null)).collect();
                let insert = format!("INSERT INTO {} VALUES ({marks})", quoted(table));
                conn.execute(&insert, rusqlite::params_from_iter(&cells))?;
            }
        }
        Self::of(conn, Path::new("rows"), time_limit::TIME, wanted).map_err(|_| rusqlite::Error::InvalidQuery)
    }
}
