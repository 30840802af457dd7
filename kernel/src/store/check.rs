//! Integrity check of a board's file: pages, indices, rows and references.

use std::path::Path;

use rusqlite::Connection;

use super::open::{self, Schema};
use super::open_error::{OpenError, sqlite};
use super::tx::Tx;
use super::{counts, missions, objects, usage};
use crate::model::counted::Counted;
use crate::model::id::{BoardId, EventId};

/// Size, in bytes, from which only the pages are checked. Comparing the indices with their tables reads everything twice,
/// in an order that is slow on disks.
const BIG: u64 = 256 * 1024 * 1024;
/// Largest number of reported faults.
const TOLD: usize = 20;

/// Part of a board that a check reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Pages, indices and references of rows. A board with a fault here cannot be served.
    Structure,
    /// The values of rows as well. A fault here spoils only its own row.
    Values,
}

/// Returns descriptions of all faults of the board at `path`; an empty list for a sound board.
///
/// # Errors
/// Errors of a file that cannot be opened as a board at all.
pub fn check_board(path: &Path) -> Result<Vec<String>, OpenError> {
    look(path, Depth::Values)
}

fn look(path: &Path, depth: Depth) -> Result<Vec<String>, OpenError> {
    let conn = match depth {
        Depth::Structure => open::early_reader(path)?,
        Depth::Values => open::auditor(path)?,
    };
    faults(&conn, path)
}

/// Refuses a board with faults.
///
/// # Errors
/// [`OpenError::Corrupt`] with the first faults, or the error that keeps the board from being opened.
pub fn require_whole(path: &Path, depth: Depth) -> Result<(), OpenError> {
    let faults = look(path, depth)?;
    if faults.is_empty() {
        return Ok(());
    }
    let more = faults.len().saturating_sub(3);
    let mut detail = faults.into_iter().take(3).collect::<Vec<_>>().join("; ");
    if more > 0 {
        detail = format!("{detail}; and {more} more");
    }
    Err(OpenError::Corrupt { path: path.to_owned(), detail })
}

/// Returns true if the file at `path` still is this board, is sound, and has every commit up to this event.
pub(crate) fn still_holds(path: &Path, board: BoardId, last_event: EventId) -> bool {
    let held = || -> Result<bool, OpenError> {
        let conn = open::reader(path)?;
        let known = Tx { conn: &conn };
        let same = known.board_id().is_ok_and(|found| found == board);
        let whole = same && known.last_event().is_ok_and(|found| found >= last_event);
        Ok(whole && integrity(&conn, "quick_check").is_ok_and(|faults| faults.is_empty()))
    };
    held().unwrap_or(false)
}

/// Returns the faults of an open database.
pub(super) fn faults(conn: &Connection, path: &Path) -> Result<Vec<String>, OpenError> {
    // First, because the other checks run what a foreign view or the constraint of a column says.
    let mut faults = objects::differences(conn, path).or_else(reported)?;
    if !faults.is_empty() {
        return Ok(faults);
    }
    let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let depth = if size > BIG { "quick_check" } else { "integrity_check" };
    faults.extend(integrity(conn, depth).or_else(|error| damaged(path, error))?);
    faults.extend(orphans(conn).or_else(|error| damaged(path, error))?);
    // The counters of an older schema are not checked: the migrations compute them anew.
    let Schema { found, known } = open::schema(conn, path)?;
    if found == known {
        faults.extend(miscounts(conn).or_else(|error| damaged(path, error))?);
    }
    faults.truncate(TOLD);
    Ok(faults)
}

/// Returns a fault if the file is so damaged that the check itself fails. Any other failure is an error of the check.
fn damaged(path: &Path, error: rusqlite::Error) -> Result<Vec<String>, OpenError> {
    reported(sqlite("check", path, error))
}

fn reported(error: OpenError) -> Result<Vec<String>, OpenError> {
    if let OpenError::Corrupt { detail, .. } = error { Ok(vec![detail]) } else { Err(error) }
}

fn integrity(conn: &Connection, depth: &str) -> rusqlite::Result<Vec<String>> {
    let mut texts = Vec::new();
    conn.pragma(None, depth, i64::try_from(TOLD).unwrap_or(i64::MAX), |row| {
        texts.push(row.get::<_, String>(0)?);
        Ok(())
    })?;
    // SQLite groups its findings under headings.
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
    Ok(lines
        .filter(|line| !line.is_empty() && *line != "ok" && !line.starts_with("***"))
        .map(str::to_owned)
        .collect())
}

fn miscounts(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let counted_faults = [
        (counts::wrong(conn)?, "of the tasks"),
        (usage::wrong(conn)?, "of what tenants keep"),
        (missions::wrong(conn)?, "of the open runs of missions"),
    ];
    let wrong = counted_faults.into_iter().filter(|(wrong, _)| *wrong > 0);
    Ok(wrong.map(|(wrong, what)| format!("wrong: {} {what}", Counted(wrong, "count"))).collect())
}

fn orphans(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare(
        "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check GROUP BY \"table\", parent ORDER BY 1, 2",
    )?;
    let rows = statement.query_map([], |row| {
        let (table, parent, count): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(format!("{} of {table} without the row of {parent} that it names", Counted(count, "row")))
    })?;
    rows.collect()
}

#[cfg(test)]
impl super::tx::Tx<'_> {
    /// Returns the number of wrong counters.
    pub(crate) fn miscounts(&self) -> i64 {
        counts::wrong(self.conn).unwrap()
            + usage::wrong(self.conn).unwrap()
            + missions::wrong(self.conn).unwrap()
    }
}
