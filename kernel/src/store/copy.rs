//! Copies of a board, and a copy made ready to take a board's place.

use std::io;
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::files::{sync, with_end};
use super::open;
use super::open_error::{OpenError, sqlite, unreadable};
use super::tx::Database;
use super::{check, create, identity, migrate};
use crate::model::id::{BoardId, BoardName, RunId};

impl Database {
    /// Copies the board page by page into a new file; what comes out is that one file.
    pub(crate) fn copy(&self, draft: &Path) -> Result<(), OpenError> {
        copy(&self.conn, draft)
    }
}

/// Copies a board that may be any one: a backup, whose directory says nothing of it.
pub(crate) fn copy_foreign(from: &Path, draft: &Path) -> Result<(), OpenError> {
    open::look(from)?;
    copy(&open::foreign(from)?, draft)
}

/// Returns the name of a board that may be any one.
pub(crate) fn name_of(path: &Path) -> Result<BoardName, OpenError> {
    identity::board_name(&open::foreign(path)?).map_err(|error| unreadable(path, &error))
}

fn copy(source: &Connection, draft: &Path) -> Result<(), OpenError> {
    create::reserve(draft)?;
    let fail = |error| sqlite("copy", draft, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut target = Connection::open_with_flags(draft, flags).map_err(fail)?;
    {
        let backup = Backup::new(source, &mut target).map_err(fail)?;
        // All at once: a copy in parts begins anew whenever somebody writes in between.
        if backup.step(-1).map_err(fail)? != StepResult::Done {
            let source = io::ErrorKind::WouldBlock.into();
            return Err(OpenError::Io { step: "copy", path: draft.to_owned(), source });
        }
    }
    // Without a log of its own the copy is complete in one file.
    target.pragma_update(None, "journal_mode", "DELETE").map_err(fail)?;
    let faults = check::faults(&target, draft)?;
    target.close().map_err(|(_, error)| fail(error))?;
    match faults.first() {
        None => Ok(()),
        Some(fault) => Err(OpenError::Corrupt { path: draft.to_owned(), detail: fault.clone() }),
    }
}

/// Puts what is in the log of a board into its file, as far as that can be done. Returns whether the file is all of it.
pub(crate) fn stands_alone(path: &Path) -> bool {
    let logs = || ["-wal", "-journal"].iter().any(|end| with_end(path, end).symlink_metadata().is_ok());
    if logs()
        && let Ok(conn) = open::foreign_writer(path)
    {
        // What cannot be done leaves the log there, which is looked at next.
        drop(conn.pragma_update(None, "journal_mode", "DELETE"));
        drop(conn.close());
    }
    !logs()
}

/// Brings a copied board up to date, and its counters past what is in use around it.
pub(crate) fn advance(draft: &Path, path: &Path, runs: RunId) -> Result<BoardId, OpenError> {
    let fail = |error| sqlite("prepare", draft, error);
    let mut conn = open::foreign_writer(draft)?;
    migrate::to_latest(&mut conn, "migrate", draft)?;
    // A board that cannot be read any more has no counters to respect.
    let former = open::foreign(path).ok();
    for table in ["task_runs", "task_events", "task_comments", "task_attachments", "holds"] {
        let known = former.as_ref().and_then(|conn| counter(conn, table).ok()).unwrap_or(0);
        let floor = if table == "task_runs" { known.max(runs.get()) } else { known };
        if counter(&conn, table).map_err(fail)? < floor {
            conn.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table]).map_err(fail)?;
            conn.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, floor))
                .map_err(fail)?;
        }
    }
    let board = identity::board_id(&conn).map_err(|e| unreadable(draft, &e))?;
    conn.close().map_err(|(_, error)| fail(error))?;
    sync(draft)?;
    Ok(board)
}

fn counter(conn: &Connection, table: &str) -> rusqlite::Result<i64> {
    conn.query_row("SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = ?1", [table], |row| {
        row.get(0)
    })
}
