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
pub enum Left {
    /// The board was closed in order, and the file has not changed since.
    Closed,
    /// The board was open in this boot: the daemon was killed, and the page cache has all its writes.
    Open,
    /// The board was open when the host went down, another program has changed the file, or no daemon has served it.
    Unknown,
}

#[derive(Debug, Serialize, Deserialize)]
struct Mark {
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

/// Returns the state in which the board at `path` was left, and marks it as open. If the mark cannot be written, it is
/// removed, so that the next daemon checks the board before it serves it.
pub fn take_over(path: &Path, boot_id: &str) -> Left {
    let Ok(meta) = fs::metadata(path) else { return Left::Unknown };
    let mark = fs::read(mark_path(path)).ok().and_then(|text| serde_json::from_slice::<Mark>(&text).ok());
    let left = match mark.filter(|mark| mark.version == 1 && mark.inode == meta.ino()) {
        Some(Mark { closed: Some(closed), .. }) if closed == standing(&meta) => Left::Closed,
        Some(Mark { closed: None, boot_id: before, .. }) if before == boot_id => Left::Open,
        Some(_) | None => Left::Unknown,
    };
    let open = Mark { version: 1, boot_id: boot_id.to_owned(), inode: meta.ino(), closed: None };
    if write(path, &open).is_err() {
        drop(fs::remove_file(mark_path(path)));
    }
    left
}

/// Marks the board at `path` as closed. The caller has stopped writing to it.
///
/// # Errors
/// [`OpenError::Io`] if the mark cannot be written. The next daemon then checks the board before it serves it.
pub fn leave(path: &Path, boot_id: &str) -> Result<(), OpenError> {
    let fail = |source| OpenError::Io { step: "write", path: mark_path(path), source };
    let meta = fs::metadata(path).map_err(fail)?;
    let closed = Some(standing(&meta));
    write(path, &Mark { version: 1, boot_id: boot_id.to_owned(), inode: meta.ino(), closed }).map_err(fail)
}

fn standing(meta: &fs::Metadata) -> Closed {
    Closed { length: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) }
}

fn mark_path(path: &Path) -> PathBuf {
    path.with_extension("left")
}

fn write(path: &Path, mark: &Mark) -> io::Result<()> {
    super::files::replace(&mark_path(path), &serde_json::to_vec(mark).map_err(io::Error::other)?)
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
        assert_eq!(take_over(&path, "boot"), Left::Unknown, "it was never served");
        assert_eq!(take_over(&path, "boot"), Left::Open, "its daemon was killed");
        assert_eq!(take_over(&path, "other"), Left::Unknown, "the host went down");

        bench.writer.close();
        leave(&path, "boot").unwrap();
        assert_eq!(take_over(&path, "other"), Left::Closed);
        assert_eq!(take_over(&path, "other"), Left::Open, "the mark holds once");

        leave(&path, "boot").unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[5000] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(take_over(&path, "boot"), Left::Unknown, "somebody wrote to it");
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
