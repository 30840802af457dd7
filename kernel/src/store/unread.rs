//! Finds rows that no reader can read, and names rows in reports.

use std::error::Error as _;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::statement::Statement as _;
use crate::model::cell::Cell;
use crate::model::error::Error;

/// Largest number of reported rows of a table.
pub(super) const TOLD: usize = 20;
/// Largest length of a row's name in a report, in characters.
const NAME: usize = 80;

/// Returns the rows of a table that a reader cannot read, each by its first column and the reason.
pub(super) fn unread<T>(
    conn: &Connection,
    table: &str,
    sql: &str,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    let told = |row: &Row<'_>| {
        let Err(error) = read(row) else { return Ok(None) };
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        Ok(Some(format!("{}: {reason}", named(table, row.get_ref(0)?))))
    };
    conn.scan("read all rows of a table", sql, [], told, |fault| {
        found.extend(fault.filter(|_| found.len() < TOLD));
        Ok(())
    })?;
    Ok(found)
}

/// Returns the name of a row in a report: its table and its first column, which can have any value.
pub(super) fn named(table: &str, key: ValueRef<'_>) -> String {
    let key = match Cell::from(key) {
        Cell::Integer(number) => number.to_string(),
        Cell::Text(text) => text,
        Cell::Null | Cell::Real(_) | Cell::Blob(_) => "without a key".to_owned(),
    };
    let key = key.chars().map(|c| if c.is_control() { '?' } else { c }).take(NAME).collect::<String>();
    format!("{table} {key}")
}
