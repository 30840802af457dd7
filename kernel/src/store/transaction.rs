//! Transactions and savepoints of the writer's connection.

use rusqlite::Connection;

use super::convert::Step as _;
use crate::model::error::{COMMIT, Error};

pub(crate) fn begin(conn: &Connection) -> Result<(), Error> {
    conn.execute_batch("BEGIN IMMEDIATE").step("begin a transaction")
}

pub(crate) fn begin_read(conn: &Connection) -> Result<(), Error> {
    conn.execute_batch("BEGIN").step("begin to read")
}

pub(crate) fn commit(conn: &Connection) -> Result<(), Error> {
    conn.execute_batch("COMMIT").step(COMMIT)
}

/// Ends whatever is open; a transaction that `SQLite` has ended itself is fine too.
pub(crate) fn rollback(conn: &Connection) -> Result<(), Error> {
    if conn.is_autocommit() { Ok(()) } else { conn.execute_batch("ROLLBACK").step("roll back") }
}

pub(crate) fn savepoint(conn: &Connection) -> Result<(), Error> {
    run(conn, "SAVEPOINT job", "begin a step")
}

pub(crate) fn release(conn: &Connection) -> Result<(), Error> {
    run(conn, "RELEASE job", "end a step")
}

pub(crate) fn undo(conn: &Connection) -> Result<(), Error> {
    run(conn, "ROLLBACK TO job", "undo a step")?;
    release(conn)
}

/// A savepoint within a job; the name is its own, so that the two never meet.
pub(crate) fn savepoint_step(conn: &Connection) -> Result<(), Error> {
    run(conn, "SAVEPOINT step", "begin a step")
}

pub(crate) fn release_step(conn: &Connection) -> Result<(), Error> {
    run(conn, "RELEASE step", "end a step")
}

pub(crate) fn undo_step(conn: &Connection) -> Result<(), Error> {
    run(conn, "ROLLBACK TO step", "undo a step")?;
    release_step(conn)
}

fn run(conn: &Connection, sql: &str, step: &'static str) -> Result<(), Error> {
    conn.prepare_cached(sql).and_then(|mut statement| statement.execute([])).step(step).map(|_| ())
}
