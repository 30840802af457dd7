//! Copies of a board, and preparation of a copy that takes the place of a board.

use std::io;
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::files::{sync, with_end};
use super::open;
use super::open_error::{OpenError, sqlite, unreadable};
use super::tx::Database;
use super::{check, create, identity, migrate, objects, time_limit};
use crate::model::id::{BoardId, BoardName, RunId};

impl Database {
    /// Copies the board page by page into a new single file.
    pub(crate) fn copy(&self, draft: &Path) -> Result<(), OpenError> {
        copy(&self.conn, draft)
    }
}

/// Copies a board without comparing it with the marker beside it: a backup, whose directory does not belong to it.
pub(crate) fn copy_foreign(from: &Path, draft: &Path) -> Result<(), OpenError> {
    open::look(from)?;
    let source = open::foreign(from)?;
    // The copy of the pages has no limit on its time, so the schema is read before.
    if let Some(difference) = objects::differences(&source, from)?.into_iter().next() {
        return Err(OpenError::Foreign { path: from.to_owned(), difference });
    }
    time_limit::unlimit(&source, from)?;
    copy(&source, draft)
}

/// Returns the name of a board without comparing it with the marker beside it.
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
        // A single step: a copy in steps starts again after every write of another connection.
        if backup.step(-1).map_err(fail)? != StepResult::Done {
            let source = io::ErrorKind::WouldBlock.into();
            return Err(OpenError::Io { step: "copy", path: draft.to_owned(), source });
        }
    }
    // Without write-ahead logging, the copy is complete in one file.
    target.pragma_update(None, "journal_mode", "DELETE").map_err(fail)?;
    let faults = check::faults(&target, draft)?;
    target.close().map_err(|(_, error)| fail(error))?;
    match faults.first() {
        None => Ok(()),
        Some(fault) => Err(OpenError::Corrupt { path: draft.to_owned(), detail: fault.clone() }),
    }
}

/// Moves the content of a board's log into its file, as far as possible. Returns true if the file alone is complete.
pub(crate) fn stands_alone(path: &Path) -> bool {
    let logs = || ["-wal", "-journal"].iter().any(|end| with_end(path, end).symlink_metadata().is_ok());
    if logs()
        && let Ok(conn) = open::foreign_writer(path)
    {
        // After a failure the log is still there, which the last line finds.
        drop(conn.pragma_update(None, "journal_mode", "DELETE"));
        drop(conn.close());
    }
    !logs()
}

/// Migrates a copied board to the latest schema.
pub(crate) fn migrate_copy(draft: &Path) -> Result<(), OpenError> {
    let mut conn = open::foreign_writer(draft)?;
    migrate::to_latest(&mut conn, "migrate", draft)?;
    conn.close().map_err(|(_, error)| sqlite("prepare", draft, error))
}

/// Moves the counters of a migrated copy past all ids in use around it.
pub(crate) fn advance(draft: &Path, path: &Path, runs: RunId) -> Result<BoardId, OpenError> {
    let fail = |error| sqlite("prepare", draft, error);
    let conn = open::foreign_writer(draft)?;
    // A board that cannot be read has no counters to respect.
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
