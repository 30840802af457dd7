//! Mark beside the file of a board with the state in which its last daemon left it. The next daemon reads it to decide if it
//! may serve the board before an integrity check.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::open_error::OpenError;

/// State in which the last daemon left a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownState {
    /// The board was closed in order, and the file has not changed since.
    Closed,
    /// The board was open in this boot: the daemon was killed, and the page cache has all its writes.
    Open,
    /// The board was open when the host went down, another program has changed the file, or no daemon has served it.
    Unknown,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShutdownRecord {
    version: u32,
    boot_id: String,
    inode: u64,
    /// Length and time of the file when it was closed; none while it is open.
    closed: Option<Closed>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Closed {
    length: u64,
    modified: (i64, i64),
}

/// Returns the state in which the board at `path` was left, and records it as open. If the record cannot be written, it is
/// removed, so that the next daemon checks the board before it serves it.
pub fn take_over(path: &Path, boot_id: &str) -> ShutdownState {
    let Ok(meta) = fs::metadata(path) else { return ShutdownState::Unknown };
    let record = fs::read(record_path(path))
        .ok()
        .and_then(|text| serde_json::from_slice::<ShutdownRecord>(&text).ok());
    let state = match record.filter(|record| record.version == 1 && record.inode == meta.ino()) {
        Some(ShutdownRecord { closed: Some(closed), .. }) if closed == file_state(&meta) => {
            ShutdownState::Closed
        }
        Some(ShutdownRecord { closed: None, boot_id: before, .. }) if before == boot_id => {
            ShutdownState::Open
        }
        Some(_) | None => ShutdownState::Unknown,
    };
    let open = ShutdownRecord { version: 1, boot_id: boot_id.to_owned(), inode: meta.ino(), closed: None };
    if write(path, &open).is_err() {
        drop(fs::remove_file(record_path(path)));
    }
    state
}

/// Records the board at `path` as closed. The caller has stopped writing to it.
///
/// # Errors
/// [`OpenError::Io`] if the record cannot be written. The next daemon then checks the board before it serves it.
pub fn leave(path: &Path, boot_id: &str) -> Result<(), OpenError> {
    let fail = |source| OpenError::Io { step: "write", path: record_path(path), source };
    let meta = fs::metadata(path).map_err(fail)?;
    let closed = Some(file_state(&meta));
    write(path, &ShutdownRecord { version: 1, boot_id: boot_id.to_owned(), inode: meta.ino(), closed })
        .map_err(fail)
}

fn file_state(meta: &fs::Metadata) -> Closed {
    Closed { length: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) }
}

fn record_path(path: &Path) -> PathBuf {
    path.with_extension("left")
}

fn write(path: &Path, record: &ShutdownRecord) -> io::Result<()> {
    super::files::replace(&record_path(path), &serde_json::to_vec(record).map_err(io::Error::other)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn a_board_is_known_as_it_was_left() {
        let bench = Bench::new();
        let path = bench.path.clone();
        bench.ready();
        assert_eq!(take_over(&path, "boot"), ShutdownState::Unknown, "it was never served");
        assert_eq!(take_over(&path, "boot"), ShutdownState::Open, "its daemon was killed");
        assert_eq!(take_over(&path, "other"), ShutdownState::Unknown, "the host went down");

        bench.writer.close();
        leave(&path, "boot").unwrap();
        assert_eq!(take_over(&path, "other"), ShutdownState::Closed);
        assert_eq!(take_over(&path, "other"), ShutdownState::Open, "the mark holds once");

        leave(&path, "boot").unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[5000] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(take_over(&path, "boot"), ShutdownState::Unknown, "somebody wrote to it");
    }

    #[test]
    fn a_writer_that_is_closed_gives_the_log_back_and_writes_no_more() {
        let bench = Bench::new();
        for _ in 0..50 {
            bench.ready();
        }
        let log = bench.path.with_extension("db-wal");
        assert!(fs::metadata(&log).unwrap().len() > 100_000);
        bench.writer.close();
        assert_eq!(fs::metadata(&log).map_or(0, |meta| meta.len()), 0);
        assert!(bench.call(|board| board.wake_due()).is_err());
        assert_eq!(crate::check_board(&bench.path).unwrap(), Vec::<String>::new());
    }
}
