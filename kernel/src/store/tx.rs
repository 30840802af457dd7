//! A database and its transactions. Every query of the board is a method of [`Tx`], in the file of its table.

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

/// How many operations of the virtual machine of `SQLite` are one step: fewer would cost time, and more would not show short statements.
const STEP: i32 = 1000;

/// An open board. One transaction at a time.
pub(crate) struct Database {
    pub(super) conn: Connection,
}

impl Database {
    /// Opens a board to write.
    pub(crate) fn writer(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { conn: open::writer(path)? })
    }

    /// Opens a board that cannot be written through what is returned.
    pub(crate) fn reader(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { conn: open::reader(path)? })
    }

    /// Counts the steps of statements from now on.
    pub(crate) fn count_steps(&self, steps: Arc<AtomicU64>) {
        let count = move || {
            steps.fetch_add(1, Ordering::Relaxed);
            false
        };
        // It fails for a connection of another program alone, and this one is our own.
        drop(self.conn.progress_handler(STEP, Some(count)));
    }

    /// Begins to write: nobody else can until the transaction is over.
    pub(crate) fn write(&self) -> Result<Tx<'_>, Error> {
        begin_to_write(&self.conn)?;
        Ok(Tx { conn: &self.conn })
    }

    /// Begins to read one consistent moment of the board.
    pub(crate) fn read(&self) -> Result<Tx<'_>, Error> {
        self.conn.run("begin to read", "BEGIN", [])?;
        Ok(Tx { conn: &self.conn })
    }

    /// Returns a number that changes when another connection has committed to the board.
    pub(crate) fn data_version(&self) -> Result<i64, Error> {
        self.conn.pragma_query_value(None, "data_version", |row| row.get(0)).step("read the data version")
    }

    /// Makes room in the write-ahead log for the next commits.
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
}

/// One transaction. What is not committed is undone when it is dropped.
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

/// A step of a transaction that can be undone by itself. Each kind stands within the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Savepoint {
    /// One job of a group.
    Job,
    /// The attempt at one task of a job.
    Attempt,
}

impl Savepoint {
    fn of(self, job: &'static str, attempt: &'static str) -> &'static str {
        match self {
            Savepoint::Job => job,
            Savepoint::Attempt => attempt,
        }
    }
}

impl Tx<'_> {
    /// Makes what was written durable.
    pub(crate) fn commit(self) -> Result<(), Error> {
        self.conn.run(COMMIT, "COMMIT", [])
    }

    /// Undoes what was written. A transaction that `SQLite` has ended itself is fine too.
    pub(crate) fn roll_back(self) -> Result<(), Error> {
        self.undo()
    }

    /// Undoes what was written, and begins to write again.
    pub(crate) fn begin_anew(&self) -> Result<(), Error> {
        self.undo()?;
        begin_to_write(self.conn)
    }

    fn undo(&self) -> Result<(), Error> {
        if self.is_over() { Ok(()) } else { self.conn.run("roll back", "ROLLBACK", []) }
    }

    /// Returns whether `SQLite` has ended the transaction itself, as it does when the disk is full.
    pub(crate) fn is_over(&self) -> bool {
        self.conn.is_autocommit()
    }

    /// Returns how many rows the connection has changed since it was opened.
    pub(crate) fn changes(&self) -> u64 {
        self.conn.total_changes()
    }

    /// Begins a step.
    pub(crate) fn savepoint(&self, savepoint: Savepoint) -> Result<(), Error> {
        self.conn.run("begin a step", savepoint.of("SAVEPOINT job", "SAVEPOINT attempt"), [])
    }

    /// Keeps what was written since the step began.
    pub(crate) fn release(&self, savepoint: Savepoint) -> Result<(), Error> {
        self.conn.run("end a step", savepoint.of("RELEASE job", "RELEASE attempt"), [])
    }

    /// Undoes what was written since the step began, and ends it.
    pub(crate) fn undo_to(&self, savepoint: Savepoint) -> Result<(), Error> {
        self.conn.run("undo a step", savepoint.of("ROLLBACK TO job", "ROLLBACK TO attempt"), [])?;
        self.release(savepoint)
    }
}
