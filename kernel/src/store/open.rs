//! Opening a board: everything that can be wrong with the file has a name and a way out.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{meta, migrate};
use crate::model::error::Error;

/// How long a statement waits for another program's lock.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// The size of the smallest database that `SQLite` writes.
const SMALLEST: u64 = 512;

/// KiB of pages that a writer keeps: room for those that a group of writes touches.
pub(super) const CACHE: i64 = 16 * 1024;
/// KiB of pages that a writer keeps while it fills a whole board, whose indices it meets in random order.
pub(super) const BULK_CACHE: i64 = 512 * 1024;

/// Why a board cannot be opened.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the name of a field says what it is")]
pub enum OpenError {
    /// The board has existed and its file is gone, or it never existed.
    #[error("the board {} is missing", path.display())]
    Missing { path: PathBuf },
    /// The file has no bytes.
    #[error("the board {} is empty: its content is gone", path.display())]
    Empty { path: PathBuf },
    /// The file is cut off.
    #[error("the board {} is cut off: {length} bytes are left", path.display())]
    Truncated { path: PathBuf, length: u64 },
    /// Something else than a file is there.
    #[error("{} is not a board: it is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    /// The file is another program's.
    #[error("{} is not a board: its application id is {application_id:#x}", path.display())]
    NotABoard { path: PathBuf, application_id: i32 },
    /// The file is damaged.
    #[error("the board {} is damaged: {detail}", path.display())]
    Corrupt { path: PathBuf, detail: String },
    /// A newer program has changed the schema.
    #[error("the board {} has schema {found}, this program knows {known}", path.display())]
    NewerSchema { path: PathBuf, found: i64, known: i64 },
    /// The board was not opened to write since this program is newer than it.
    #[error("the board {} has schema {found} of an earlier release, this program reads {known}", path.display())]
    OlderSchema { path: PathBuf, found: i64, known: i64 },
    /// The marker beside the file names another board.
    #[error("the board {} is {found}, but {} names {expected}", path.display(), marker.display())]
    Mixed { path: PathBuf, marker: PathBuf, found: String, expected: String },
    /// The file may not be read or written.
    #[error("the board {} may not be opened: {source}", path.display())]
    Permission { path: PathBuf, source: io::Error },
    /// The file system failed.
    #[error("failed to {step} {}: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    /// The board exists already.
    #[error("the board {} already exists", path.display())]
    Exists { path: PathBuf },
    /// `SQLite` failed.
    #[error("failed to {step} the board {}: {source}", path.display())]
    Sqlite { step: &'static str, path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

impl OpenError {
    /// Says which step failed on a path.
    pub(crate) fn io(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { step, path, source }
    }

    /// Returns the way out.
    pub fn hint(&self) -> Option<String> {
        match self {
            OpenError::Missing { path } | OpenError::Empty { path } | OpenError::Truncated { path, .. } => {
                Some(format!(
                    "restore a backup with `supervisor restore <file>` in place of {}; to start over, remove its whole directory {}",
                    path.display(),
                    path.parent().unwrap_or(path).display()
                ))
            }
            OpenError::Corrupt { .. } => Some(
                "with the daemon stopped: `supervisor doctor --repair` mends it and keeps the damaged file, \
                 `supervisor restore <file>` restores a backup"
                    .to_owned(),
            ),
            OpenError::NotABoard { path, .. } | OpenError::NotAFile { path } => {
                Some(format!("move {} away if it is yours, then create the board again", path.display()))
            }
            OpenError::NewerSchema { .. } => {
                Some("use the newer supervisor, or restore an older backup".to_owned())
            }
            OpenError::OlderSchema { .. } => Some(
                "start the daemon of this release, which migrates it: supervisor daemon; a backup before that is what an earlier release can \
                 still read"
                    .to_owned(),
            ),
            OpenError::Mixed { marker, .. } => {
                Some(format!("put the right file back; if this is the one, remove {}", marker.display()))
            }
            OpenError::Permission { path, .. } => Some(format!(
                "run as the owner of {}, or give it back to the supervisor's user",
                path.display()
            )),
            OpenError::Exists { .. } => Some("use it, or choose another name".to_owned()),
            OpenError::Io { .. } | OpenError::Sqlite { .. } => None,
        }
    }
}

/// Looks at the file without opening it: an open and close outside `SQLite` would drop its locks.
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

/// Opens the writer's connection and brings the schema up to date.
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

/// Opens a connection that cannot write, to a board whose schema is that of this program.
pub(crate) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let conn = early_reader(path)?;
    let Schema { found, known } = schema(&conn, path)?;
    if found < known {
        return Err(OpenError::OlderSchema { path: path.to_owned(), found, known });
    }
    Ok(conn)
}

/// Opens a connection that cannot write, to a board that is perhaps still to be migrated: some of the tables and columns of this program
/// may be missing.
pub(super) fn early_reader(path: &Path) -> Result<Connection, OpenError> {
    look(path)?;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    check(&conn, path)?;
    conn.pragma_update(None, "query_only", true).map_err(|error| sqlite("prepare", path, error))?;
    identity(&conn, path)?;
    Ok(conn)
}

/// Opens a connection that could write and does not: `SQLite` reads the constraints of a file only where it may write to
/// it, and what it has not read it does not check.
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

/// Opens a board that may be any one: a backup, whose directory says nothing of it.
pub(super) fn foreign(path: &Path) -> Result<Connection, OpenError> {
    look(path)?;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    check(&conn, path)?;
    Ok(conn)
}

/// Opens such a board to write, while nobody else knows of it.
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
    // A plan does not depend on the values that are bound: without this a statement with `LIMIT ?` is compiled at each use.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(|error| sqlite("open", path, error))?;
    Ok(conn)
}

/// Sets what every writing connection needs.
pub(crate) fn prepare(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // Savepoints keep what they may have to undo; a file for that would be made and removed in each transaction.
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    cache(conn, CACHE)?;
    // In pages. A page that many commits change goes back into the table once for all of them.
    conn.pragma_update(None, "wal_autocheckpoint", 4096)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    // In bytes: what a reader let the log grow to beyond that is given back when it begins anew.
    conn.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)
}

/// Sets how many KiB of pages a connection keeps.
pub(super) fn cache(conn: &Connection, kib: i64) -> rusqlite::Result<()> {
    // A positive number would count pages.
    conn.pragma_update(None, "cache_size", -kib)
}

/// The schema of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// That of the file.
    pub found: i64,
    /// The newest one that this program knows.
    pub known: i64,
}

/// Reads the schema of the board at `path`, also where a newer program has changed it. Changes nothing.
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

/// Reads the schema of an open board.
pub(super) fn schema(conn: &Connection, path: &Path) -> Result<Schema, OpenError> {
    let application_id: i32 = conn
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|e| sqlite("read", path, e))?;
    if application_id != migrate::APPLICATION_ID {
        return Err(OpenError::NotABoard { path: path.to_owned(), application_id });
    }
    let found = conn
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|e| sqlite("read", path, e))?;
    Ok(Schema { found, known: migrate::latest() })
}

fn identity(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let found = meta::board_id(conn).map_err(|error| unreadable(path, &error))?;
    let marker = super::create::marker_path(path);
    match super::create::read_marker(&marker)? {
        Some(expected) if expected != found => Err(OpenError::Mixed {
            path: path.to_owned(),
            marker,
            found: found.to_string(),
            expected: expected.to_string(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// What a board is whose own rows cannot be read.
pub(super) fn unreadable(path: &Path, error: &Error) -> OpenError {
    OpenError::Corrupt { path: path.to_owned(), detail: error.to_string() }
}

pub(crate) fn sqlite(step: &'static str, path: &Path, error: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Corrupt { path, detail: error.to_string() }
        }
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            OpenError::Permission { path, source: io::Error::other(error) }
        }
        _ => OpenError::Sqlite { step, path, source: Box::new(error) },
    }
}
