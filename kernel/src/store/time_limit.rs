//! A limit on the time of a connection's statements: the schema of a foreign file may make a statement run without an end.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::open_error::{OpenError, sqlite};

/// Limit on the time that a foreign schema may take to be read.
pub(super) const TIME: Duration = Duration::from_secs(30);
/// Number of operations of `SQLite` between two looks at the clock.
const OPERATIONS: i32 = 10_000;

/// Ends the statements of a connection to a foreign file when this time is over.
pub(super) fn limit(conn: &Connection, path: &Path, time: Duration) -> Result<(), OpenError> {
    let started = Instant::now();
    conn.progress_handler(OPERATIONS, Some(move || started.elapsed() >= time))
        .map_err(|error| sqlite("prepare", path, error))
}

/// Ends the time limit of a connection whose schema is known.
pub(super) fn unlimit(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    conn.progress_handler(0, None::<fn() -> bool>).map_err(|error| sqlite("prepare", path, error))
}
