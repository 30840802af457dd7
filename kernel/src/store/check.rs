//! Whether a board's file is whole: its pages, its indices, its rows and what they refer to.

use std::path::Path;

use rusqlite::Connection;

use super::open::{self, Schema};
use super::open_error::{OpenError, sqlite};
use super::tx::Tx;
use super::{counts, missions, usage};
use crate::model::counted::Counted;
use crate::model::id::{BoardId, EventId};

/// From this size on the pages are checked and the indices are not compared with their tables: that reads everything
/// twice, in an order that disks do not like.
const BIG: u64 = 256 * 1024 * 1024;
/// The most faults that are reported.
const TOLD: usize = 20;

/// How much of a board is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Its pages, its indices and what its rows refer to: without these it cannot be served.
    Structure,
    /// The values of its rows as well. One that makes no sense spoils its own row alone.
    Values,
}

/// Returns everything that is wrong with the board at `path`, in words; nothing for a board that is whole.
///
/// # Errors
/// A file that cannot be opened as a board at all.
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

/// Refuses a board that is not whole.
///
/// # Errors
/// [`OpenError::Corrupt`] with the first faults; whatever keeps it from being opened.
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

/// Whether the file at `path` still holds a board, in one piece and with what was committed to it.
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

/// Returns what is wrong with an open database.
pub(super) fn faults(conn: &Connection, path: &Path) -> Result<Vec<String>, OpenError> {
    let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let depth = if size > BIG { "quick_check" } else { "integrity_check" };
    let mut faults = integrity(conn, depth).or_else(|error| damaged(path, error))?;
    faults.extend(orphans(conn).or_else(|error| damaged(path, error))?);
    // Those of an earlier schema are another program's; migrations make of them what is counted here.
    let Schema { found, known } = open::schema(conn, path)?;
    if found == known {
        faults.extend(miscounts(conn).or_else(|error| damaged(path, error))?);
    }
    faults.truncate(TOLD);
    Ok(faults)
}

/// A file so broken that the check itself fails has a fault; any other failure is one of the check.
fn damaged(path: &Path, error: rusqlite::Error) -> Result<Vec<String>, OpenError> {
    let error = sqlite("check", path, error);
    if let OpenError::Corrupt { detail, .. } = error { Ok(vec![detail]) } else { Err(error) }
}

fn integrity(conn: &Connection, depth: &str) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    conn.pragma(None, depth, i64::try_from(TOLD).unwrap_or(i64::MAX), |row| {
        found.push(row.get::<_, String>(0)?);
        Ok(())
    })?;
    // SQLite groups its findings under headings of their own.
    let lines = found.iter().flat_map(|text| text.lines()).map(str::trim);
    Ok(lines
        .filter(|line| !line.is_empty() && *line != "ok" && !line.starts_with("***"))
        .map(str::to_owned)
        .collect())
}

fn miscounts(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let found = [
        (counts::wrong(conn)?, "of the tasks"),
        (usage::wrong(conn)?, "of what tenants keep"),
        (missions::wrong(conn)?, "of the open runs of missions"),
    ];
    let wrong = found.into_iter().filter(|(wrong, _)| *wrong > 0);
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
    /// Returns how many counters differ from what they count.
    pub(crate) fn miscounts(&self) -> i64 {
        counts::wrong(self.conn).unwrap()
            + usage::wrong(self.conn).unwrap()
            + missions::wrong(self.conn).unwrap()
    }
}
