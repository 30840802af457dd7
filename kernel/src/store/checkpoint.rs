//! Giving the write-ahead log back: what it holds goes into the database, and its room to the file system.

use std::time::Duration;

use rusqlite::Connection;

/// How long a statement waits for another program's lock.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// A shorter log is left as it is: to make it anew costs more than to read it.
const LONG: u64 = 1024 * 1024;

/// Empties the log, unless it is short or somebody reads from it at the moment.
pub(crate) fn when_long(conn: &Connection) {
    if log_length(conn) >= LONG {
        empty(conn);
    }
}

/// Empties the log where no reader uses it. Where this fails, a later commit or the next opening of the board does it.
pub(crate) fn empty(conn: &Connection) {
    // A reader is not waited for: the next commit may be.
    if conn.busy_timeout(Duration::ZERO).is_ok() {
        drop(conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    }
    drop(conn.busy_timeout(BUSY));
}

fn log_length(conn: &Connection) -> u64 {
    let Some(path) = conn.path() else { return 0 };
    std::fs::metadata(format!("{path}-wal")).map_or(0, |meta| meta.len())
}
