//! Space of the write-ahead log: allocated ahead of the commits that use it, and truncated after a checkpoint.
//!
//! See decision 0219.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::files::with_end;

/// Time for which a statement waits for the lock of another program.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// Step in which the log grows, in bytes. The next process that opens the board reads at most this many zeros.
const ROOM: u64 = 1024 * 1024;
/// Length, in bytes, below which the log does not grow ahead. A board with few commits keeps a short log.
const SHORT: u64 = 128 * 1024;
/// Length, in bytes, of a log that is read in less time than a sync takes.
const READ_SOON: u64 = 512 * 1024;

/// Extends the log to the next multiple of [`ROOM`] if the last commit has extended it.
///
/// A commit that extends a file waits for the journal of the file system, with all pending changes of others in it, such
/// as new directories. On a full disk the log stays as it is.
pub(crate) fn reserve(conn: &Connection) {
    let Some(path) = log(conn) else { return };
    let length = length(&path);
    if length < SHORT || length.is_multiple_of(ROOM) {
        return;
    }
    without_waiting(conn, || {
        // No other writer adds to the log until this transaction is dropped and rolled back.
        let _alone = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
        drop(OpenOptions::new().write(true).open(path).and_then(|log| lengthen(&log)));
        Ok(())
    });
}

/// Writes zeros. Allocating the space would not be enough: the first use of an allocated block goes through the journal
/// too.
fn lengthen(log: &File) -> io::Result<()> {
    let length = log.metadata()?.len();
    let zeros = vec![0; usize::try_from(length.next_multiple_of(ROOM) - length).unwrap_or(0)];
    log.write_all_at(&zeros, length).inspect_err(|_| drop(log.set_len(length)))
}

/// Truncates the log, unless it is short or a reader uses it at the moment.
pub(crate) fn when_long(conn: &Connection) {
    if log(conn).is_some_and(|log| length(&log) > ROOM) {
        empty(conn);
    }
}

/// Truncates the log if no reader uses it. After a failure, a later commit or the next opening of the board does it.
pub(crate) fn empty(conn: &Connection) {
    without_waiting(conn, || conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
}

/// Truncates the log, or leaves it as it is if the next process reads it soon.
pub(crate) fn leave(conn: &Connection) {
    if log(conn).is_some_and(|log| length(&log) > READ_SOON) {
        empty(conn);
    } else {
        // Otherwise the close of the last connection would move the log into the database.
        drop(conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
    }
}

/// Runs a step that a later commit can repeat, and only if it gets the lock at once, because the next commit may be
/// waiting.
fn without_waiting(conn: &Connection, attempt: impl FnOnce() -> rusqlite::Result<()>) {
    if conn.busy_timeout(Duration::ZERO).is_ok() {
        drop(attempt());
    }
    drop(conn.busy_timeout(BUSY));
}

fn log(conn: &Connection) -> Option<PathBuf> {
    conn.path().map(|path| with_end(Path::new(path), "-wal"))
}

fn length(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |meta| meta.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::open::prepare;

    fn board(dir: &Path) -> (Connection, PathBuf) {
        let path = dir.join("board.db");
        let conn = Connection::open(&path).unwrap();
        prepare(&conn).unwrap();
        conn.execute_batch("CREATE TABLE t (x)").unwrap();
        (conn, with_end(&path, "-wal"))
    }

    fn write(conn: &Connection, kib: u32) {
        conn.execute("INSERT INTO t VALUES (randomblob(? * 1024))", [kib]).unwrap();
    }

    fn rows(conn: &Connection) -> u32 {
        conn.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn commits_fill_the_room_that_was_made_for_them_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (conn, log) = board(dir.path());
        reserve(&conn);
        assert!(length(&log) < SHORT, "the log of few commits is as long as they are");
        write(&conn, 200);
        reserve(&conn);
        assert_eq!(length(&log), ROOM);
        for _ in 0..3 {
            write(&conn, 200);
            reserve(&conn);
        }
        assert_eq!(length(&log), ROOM, "it was room enough");
        when_long(&conn);
        assert_eq!(length(&log), ROOM, "one that is no longer stays");
        write(&conn, 300);
        reserve(&conn);
        assert_eq!(length(&log), 2 * ROOM);
        when_long(&conn);
        assert_eq!((length(&log), rows(&conn)), (0, 5));
    }

    #[test]
    fn who_opens_the_board_after_a_crash_finds_each_commit_before_the_room() {
        let dir = tempfile::tempdir().unwrap();
        let (conn, log) = board(dir.path());
        write(&conn, 200);
        reserve(&conn);
        write(&conn, 1);
        let left = tempfile::tempdir().unwrap();
        let path = left.path().join("board.db");
        std::fs::copy(dir.path().join("board.db"), &path).unwrap();
        std::fs::copy(&log, with_end(&path, "-wal")).unwrap();
        let opened = Connection::open(&path).unwrap();
        assert_eq!(rows(&opened), 2);
        write(&opened, 1);
        assert_eq!(rows(&opened), 3);
    }

    #[test]
    fn a_short_log_is_left_with_all_commits_and_a_longer_one_is_moved() {
        let dir = tempfile::tempdir().unwrap();
        let (conn, log) = board(dir.path());
        write(&conn, 100);
        leave(&conn);
        drop(conn);
        assert!(length(&log) > 100 * 1024);
        let conn = Connection::open(dir.path().join("board.db")).unwrap();
        assert_eq!(rows(&conn), 1);
        write(&conn, 600);
        leave(&conn);
        assert_eq!((length(&log), rows(&conn)), (0, 2));
    }

    #[test]
    fn nobody_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (conn, log) = board(dir.path());
        write(&conn, 200);
        let before = length(&log);
        let other = Connection::open(dir.path().join("board.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        reserve(&conn);
        assert_eq!(length(&log), before);
        other.execute_batch("ROLLBACK").unwrap();
        reserve(&conn);
        assert_eq!(length(&log), ROOM);
    }
}
