//! Reads the tables of another program's database from a copy.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::open_error::{OpenError, sqlite};
use super::rows::{columns, is_plain, tables};
use super::time_limit;
use crate::model::cell::Cell;

/// Row by its columns.
pub(crate) type ForeignRow = BTreeMap<String, Cell>;

/// Content of another program's database.
pub(crate) struct Foreign {
    /// Rows of each wanted table that exists.
    pub(crate) rows: BTreeMap<String, Vec<ForeignRow>>,
    /// Names of the other tables.
    pub(crate) others: Vec<String>,
}

/// Reads the `wanted` tables of the database copy at `copy`; messages name `path`. The first wanted table must exist.
pub(crate) fn read(copy: &Path, path: &Path, wanted: &[&str]) -> Result<Foreign, OpenError> {
    let fail = |error| sqlite("read", path, error);
    // Writable, so that SQLite applies the copied log.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(copy, flags).map_err(fail)?;
    // Its statements can be slow by design: a generated column computes anything.
    let size = std::fs::metadata(copy).map_or(0, |meta| meta.len());
    time_limit::limit(&conn, path, time_limit::TIME + Duration::from_secs(size >> 20))?;
    let sound: String = conn.pragma_query_value(None, "quick_check", |row| row.get(0)).map_err(fail)?;
    if sound != "ok" {
        return Err(OpenError::Corrupt { path: path.to_owned(), detail: sound });
    }
    let there = tables(&conn).map_err(fail)?;
    let is_there = |table: &str| there.iter().any(|name| name == table);
    for table in wanted.iter().filter(|table| is_there(table)) {
        // A virtual table can run any view of the file.
        if !is_plain(&conn, table).map_err(fail)? {
            return Err(OpenError::Corrupt {
                path: path.to_owned(),
                detail: format!("its table {table} is virtual"),
            });
        }
    }
    if wanted.first().is_some_and(|first| !is_there(first)) {
        return Err(OpenError::NotABoard { path: path.to_owned(), application_id: 0 });
    }
    let mut rows = BTreeMap::new();
    for table in wanted.iter().filter(|table| is_there(table)) {
        rows.insert((*table).to_owned(), read_table(&conn, table).map_err(fail)?);
    }
    let others = there.into_iter().filter(|name| !wanted.contains(&name.as_str())).collect();
    Ok(Foreign { rows, others })
}

fn read_table(conn: &Connection, table: &str) -> rusqlite::Result<Vec<ForeignRow>> {
    let names = columns(conn, table)?;
    let mut statement = conn.prepare(&format!("SELECT * FROM \"{table}\" ORDER BY rowid"))?;
    let mut rows = statement.query([])?;
    let mut matching_rows = Vec::new();
    while let Some(row) = rows.next()? {
        let cells = names.iter().enumerate().map(|(at, name)| Ok((name.clone(), row.get_ref(at)?.into())));
        matching_rows.push(cells.collect::<rusqlite::Result<_>>()?);
    }
    Ok(matching_rows)
}
