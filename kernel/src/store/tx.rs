//! Database connections and transactions. Every query of the board is a method of [`Tx`], in the file of its table.
//!
//! See decision 0059.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use super::checkpoint;
use super::convert::Step as _;
use super::open;
use super::open_error::OpenError;
use super::statement::Statement as _;
use crate::model::error::{COMMIT, Error};

/// Operations of the virtual machine of `SQLite` per counted step. A smaller step would cost time; with a larger step, short
/// statements would not show.
const STEP: i32 = 1000;

/// Open board, with one transaction at a time.
pub(crate) struct Database {
    pub(super) conn: Connection,
}

impl Database {
    /// Opens a board for writing.
    pub(crate) fn writer(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { conn: open::writer(path)? })
    }

    /// Opens a board for reading only.
    pub(crate) fn reader(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { conn: open::reader(path)? })
    }

    /// Counts the steps of statements from now on.
    pub(crate) fn count_steps(&self, steps: Arc<AtomicU64>) {
        let count = move || {
            steps.fetch_add(1, Ordering::Relaxed);
            false
        };
        // The call fails only for a connection that another program owns, and this connection is our own.
        drop(self.conn.progress_handler(STEP, Some(count)));
    }

    /// Begins to write. No other connection can write until the transaction is over.
    pub(crate) fn write(&self) -> Result<Tx<'_>, Error> {
        begin_to_write(&self.conn)?;
        Ok(Tx { conn: &self.conn })
    }

    /// Begins to read the board at one consistent moment.
    pub(crate) fn read(&self) -> Result<Tx<'_>, Error> {
        self.conn.run("begin to read", "BEGIN", [])?;
        Ok(Tx { conn: &self.conn })
    }

    /// Returns a number that changes when another connection has committed to the board.
    pub(crate) fn data_version(&self) -> Result<i64, Error> {
        self.conn.pragma_query_value(None, "data_version", |row| row.get(0)).step("read the data version")
    }

    /// Allocates space in the write-ahead log for the next commits.
    pub(crate) fn reserve_log(&self) {
        checkpoint::reserve(&self.conn);
    }

    /// Moves a long write-ahead log into the database.
    pub(crate) fn shorten_log(&self) {
        checkpoint::when_long(&self.conn);
    }

    /// Moves the write-ahead log into the database.
    pub(crate) fn empty_log(&self) {
        checkpoint::empty(&self.conn);
    }

    /// Moves the write-ahead log into the database, unless it is short.
    pub(crate) fn leave_log(&self) {
        checkpoint::leave(&self.conn);
    }
}

/// Transaction. Uncommitted changes are undone when it is dropped.
pub(crate) struct Tx<'c> {
    pub(super) conn: &'c Connection,
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        drop(self.undo());
    }
}

fn begin_to_write(conn: &Connection) -> Result<(), Error> {
    conn.run("begin a transaction", "BEGIN IMMEDIATE", [])
}

/// Savepoint of a transaction. Each kind is nested in the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Savepoint {
    /// Savepoint around one job of a group.
    Job,
    /// An attempt at one task of a job.
    Attempt,
}

impl Savepoint {
    fn choose(self, job: &'static str, attempt: &'static str) -> &'static str {
        match self {
            Savepoint::Job => job,
            Savepoint::Attempt => attempt,
        }
    }
}

impl Tx<'_> {
    /// Makes the changes durable.
    pub(crate) fn commit(self) -> Result<(), Error> {
        self.conn.run(COMMIT, "COMMIT", [])
    }

    /// Undoes the changes. A transaction that `SQLite` has ended itself is accepted.
    pub(crate) fn roll_back(self) -> Result<(), Error> {
        self.undo()
    }

    /// Undoes the changes and begins to write again.
    pub(crate) fn begin_anew(&self) -> Result<(), Error> {
        self.undo()?;
        begin_to_write(self.conn)
    }

    fn undo(&self) -> Result<(), Error> {
        if self.is_over() { Ok(()) } else { self.conn.run("roll back", "ROLLBACK", []) }
    }

    /// Returns true if `SQLite` has ended the transaction itself, as it does when the disk is full.
    pub(crate) fn is_over(&self) -> bool {
        self.conn.is_autocommit()
    }

    /// Returns the number of rows that the connection has changed since it was opened.
    pub(crate) fn changes(&self) -> u64 {
        self.conn.total_changes()
    }

    pub(crate) fn savepoint(&self, savepoint: Savepoint) -> Result<(), Error> {
        self.conn.run("begin a step", savepoint.choose("SAVEPOINT job", "SAVEPOINT attempt"), [])
    }

    /// Keeps the changes since the savepoint, and removes it.
    pub(crate) fn release(&self, savepoint: Savepoint) -> Result<(), Error> {
        self.conn.run("end a step", savepoint.choose("RELEASE job", "RELEASE attempt"), [])
    }

    /// Undoes the changes since the savepoint, and removes it.
    pub(crate) fn undo_to(&self, savepoint: Savepoint) -> Result<(), Error> {
        self.conn.run("undo a step", savepoint.choose("ROLLBACK TO job", "ROLLBACK TO attempt"), [])?;
        self.release(savepoint)
    }
}
