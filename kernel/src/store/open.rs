//! Opens the database of a board for writing, reading or checking. Each fault of the file has its own error with a hint.

use std::io;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::checkpoint::BUSY;
use super::open_error::{OpenError, sqlite, unreadable};
use super::{identity, marker, migrate, time_limit};

/// Size of the smallest database that `SQLite` writes, in bytes.
const SMALLEST: u64 = 512;

/// Page cache of a writer, in KiB: enough for the pages of a group of writes.
pub(super) const CACHE: i64 = 16 * 1024;
/// Page cache of a writer that fills a whole board, in KiB: enough for the keys of a million tasks, which come in any order.
pub(super) const BULK_CACHE: i64 = 48 * 1024;

/// Examines the file without opening it. This process would lose all its POSIX locks on the file, which `SQLite` uses, at
/// the close of any descriptor of it (`fcntl_locking(2)`).
#[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum that grows")]
pub(crate) fn look(path: &Path) -> Result<(), OpenError> {
    let metadata = std::fs::metadata(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => OpenError::Missing { path: path.to_owned() },
        io::ErrorKind::PermissionDenied => OpenError::Permission { path: path.to_owned(), source },
        _ => OpenError::Io { step: "look at", path: path.to_owned(), source },
    })?;
    if !metadata.is_file() {
        return Err(OpenError::NotAFile { path: path.to_owned() });
    }
    match metadata.len() {
        0 => Err(OpenError::Empty { path: path.to_owned() }),
        length if length < SMALLEST => Err(OpenError::Truncated { path: path.to_owned(), length }),
        _ => Ok(()),
    }
}

/// Opens the connection of the writer and migrates the schema.
pub(crate) fn writer(path: &Path) -> Result<Connection, OpenError> {
    look(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = connect(path, flags)?;
    check(&conn, path)?;
    prepare(&conn).map_err(|error| sqlite("prepare", path, error))?;
    migrate::to_latest(&mut conn, "migrate", path)?;
    identity(&conn, path)?;
    Ok(conn)
}

/// Opens a read-only connection to a board with the schema of this program.
pub(crate) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let conn = early_reader(path)?;
    let Schema { found, known } = schema(&conn, path)?;
    if found < known {
        return Err(OpenError::OlderSchema { path: path.to_owned(), found, known });
    }
    Ok(conn)
}

/// Opens a read-only connection to a board that may have an older schema. Some tables and columns of this program may be
/// missing.
pub(super) fn early_reader(path: &Path) -> Result<Connection, OpenError> {
    look(path)?;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    check(&conn, path)?;
    conn.pragma_update(None, "query_only", true).map_err(|error| sqlite("prepare", path, error))?;
    identity(&conn, path)?;
    Ok(conn)
}

/// Opens a connection for checks, which may write and does not. `SQLite` reads the constraints of a file only through such a
/// connection, and its integrity check covers only constraints that it has read.
pub(super) fn auditor(path: &Path) -> Result<Connection, OpenError> {
    look(path)?;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    check(&conn, path)?;
    let still = conn
        .pragma_update(None, "query_only", true)
        .and_then(|()| conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
    still.map_err(|error| sqlite("prepare", path, error))?;
    identity(&conn, path)?;
    Ok(conn)
}

/// Opens a backup read-only. Its identity is not compared with a marker beside it, which may be another board's. Its
/// statements have a time limit.
pub(super) fn foreign(path: &Path) -> Result<Connection, OpenError> {
    look(path)?;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    time_limit::limit(&conn, path, time_limit::TIME)?;
    check(&conn, path)?;
    Ok(conn)
}

/// Opens a board for writing without comparing its identity with the marker. No other process may use the board.
pub(super) fn foreign_writer(path: &Path) -> Result<Connection, OpenError> {
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    check(&conn, path)?;
    conn.pragma_update(None, "synchronous", "FULL").map_err(|error| sqlite("prepare", path, error))?;
    Ok(conn)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    let conn = Connection::open_with_flags(path, flags).map_err(|error| sqlite("open", path, error))?;
    conn.busy_timeout(BUSY).map_err(|error| sqlite("open", path, error))?;
    conn.set_prepared_statement_cache_capacity(128);
    // With this setting, plans do not depend on bound values. Otherwise a statement with `LIMIT ?` would be compiled again
    // for each new value.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(|error| sqlite("open", path, error))?;
    Ok(conn)
}

/// Configures a writing connection.
pub(crate) fn prepare(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // Temporary data is in memory, because savepoints would otherwise create and remove a file in each transaction.
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    cache(conn, CACHE)?;
    // The unit is pages. With a long log, a page that many commits change is written back to the file once.
    conn.pragma_update(None, "wal_autocheckpoint", 4096)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    // The unit is bytes. If a reader has made the log grow beyond this size, it is truncated when it restarts.
    conn.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)
}

/// Sets the page cache of a connection, in KiB.
pub(super) fn cache(conn: &Connection, kib: i64) -> rusqlite::Result<()> {
    // SQLite takes a negative value as KiB, and a positive value as pages.
    conn.pragma_update(None, "cache_size", -kib)
}

/// Schema versions of a board and of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Schema version of the file.
    pub found: i64,
    /// Newest schema version that this program knows.
    pub known: i64,
}

/// Returns the schema version of the board at `path`, even if a newer program has migrated it. Changes nothing.
pub fn schema_of(path: &Path) -> Result<Schema, OpenError> {
    look(path)?;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    schema(&conn, path)
}

fn check(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let Schema { found, known } = schema(conn, path)?;
    if found > known {
        return Err(OpenError::NewerSchema { path: path.to_owned(), found, known });
    }
    Ok(())
}

/// Returns the schema version of an open board.
pub(super) fn schema(conn: &Connection, path: &Path) -> Result<Schema, OpenError> {
    let application_id: i32 = conn
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|e| sqlite("read", path, e))?;
    match application_id {
        migrate::APPLICATION_ID => {}
        migrate::BEFORE_RELEASES => return Err(OpenError::OlderFormat { path: path.to_owned() }),
        _ => return Err(OpenError::NotABoard { path: path.to_owned(), application_id }),
    }
    let schema = conn
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|e| sqlite("read", path, e))?;
    Ok(Schema { found: schema, known: migrate::latest() })
}

fn identity(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let board_id = identity::board_id(conn).map_err(|error| unreadable(path, &error))?;
    let marker_path = marker::path(path);
    match marker::read(&marker_path)? {
        Some(expected) if expected != board_id => Err(OpenError::Mixed {
            path: path.to_owned(),
            marker: marker_path,
            found: board_id.to_string(),
            expected: expected.to_string(),
        }),
        Some(_) | None => Ok(()),
    }
}
