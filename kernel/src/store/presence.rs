//! Verifies that the open files of a board are still the files that its path names, with all that its writer wrote.
//! Writes to a removed, replaced or overwritten file would be lost with it.
//!
//! See decision 0043.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::files::with_end;
use crate::model::error::{Error, StorageKind};

/// Change of a board's file that makes its connections useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileFault {
    Removed,
    Replaced,
    CutOff,
    Overwritten,
}

/// Error for a file of a board that is no longer the open file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Displaced {
    path: PathBuf,
    fate: FileFault,
}

impl fmt::Display for Displaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.fate {
            FileFault::Removed => write!(f, "{path} was removed while it is in use"),
            FileFault::Replaced => write!(f, "{path} was replaced by another file while it is in use"),
            FileFault::CutOff => write!(f, "{path} was cut off while it is in use"),
            FileFault::Overwritten => {
                write!(f, "{path} was overwritten by something else while it is in use")
            }
        }
    }
}

impl std::error::Error for Displaced {}

/// Identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// Files of an open board: the database, its log and the index of the log.
#[derive(Debug)]
pub(crate) struct Presence {
    files: [(PathBuf, Option<Identity>); 3],
    /// Largest length of the database so far, in bytes. This program never shortens it.
    length: AtomicU64,
    written: Mutex<LastWrites>,
}

/// Time of a file's last write, from its file system (seconds, then nanoseconds).
type Moment = (i64, i64);

/// Last writers of the database file. Its own writer writes at commits and checkpoints. Any other writer is another
/// program, such as a person's `sqlite3`, or `cp`.
#[derive(Debug, Default)]
struct LastWrites {
    /// Time of the last write by its own writer.
    by_writer: Option<Moment>,
    /// Time of the last write by another program that left another board, or none at all.
    by_stranger: Option<Moment>,
}

impl Presence {
    /// Records the files that a path names, right after they were opened.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let files = ["", "-wal", "-shm"].map(|end| {
            let file = with_end(path, end);
            let identity = std::fs::metadata(&file).ok().map(|meta| identity(&meta));
            (file, identity)
        });
        let meta = std::fs::metadata(path)?;
        let written = LastWrites { by_writer: Some(moment(&meta)), by_stranger: None };
        Ok(Self { files, length: AtomicU64::new(meta.len()), written: Mutex::new(written) })
    }

    /// Refuses to go on if one of the files is no longer the open file. Otherwise records that the last write may be the
    /// writer's.
    pub(crate) fn require_written(&self) -> Result<(), Error> {
        if let Some(now) = self.look(self.files.len()).map_err(displaced)? {
            self.written().by_writer = Some(now);
        }
        Ok(())
    }

    /// Refuses to go on if the database is no longer the open file, or if another program wrote to it, unless `is_own`
    /// finds that the file still has this board. `is_own` runs once for each write time.
    ///
    /// The other files are examined when something was written, because nothing is acknowledged before that.
    pub(crate) fn require_own(&self, is_own: impl FnOnce() -> bool) -> Result<(), Error> {
        let now = self.look(1).map_err(displaced)?;
        let mut written = self.written();
        if now.is_none() || now == written.by_writer {
            written.by_stranger = None;
            return Ok(());
        }
        if now != written.by_stranger {
            if is_own() {
                *written = LastWrites { by_writer: now, by_stranger: None };
                return Ok(());
            }
            written.by_stranger = now;
        }
        drop(written);
        self.require_known()
    }

    /// Refuses to go on if another program is known to have written to the database.
    pub(crate) fn require_known(&self) -> Result<(), Error> {
        match self.written().by_stranger {
            None => Ok(()),
            Some(_) => {
                Err(displaced(Displaced { path: self.files[0].0.clone(), fate: FileFault::Overwritten }))
            }
        }
    }

    fn written(&self) -> std::sync::MutexGuard<'_, LastWrites> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses to go on if one of the files was removed, replaced or cut off.
    pub(crate) fn require(&self) -> Result<(), Error> {
        self.look(self.files.len()).map(drop).map_err(displaced)
    }

    /// Examines the first `count` files. Returns the time of the last write to the database, if the file can be examined.
    fn look(&self, count: usize) -> Result<Option<Moment>, Displaced> {
        let mut written = None;
        for (at, (path, known)) in self.files.iter().enumerate().take(count) {
            let Some(known) = known else { continue };
            let lost = |fate| Displaced { path: path.clone(), fate };
            let meta = match std::fs::metadata(path) {
                Ok(meta) => meta,
                // Another error, such as a missing permission on a directory, does not endanger the open file.
                Err(error) if error.kind() != io::ErrorKind::NotFound => continue,
                Err(_) => return Err(lost(FileFault::Removed)),
            };
            if identity(&meta) != *known {
                return Err(lost(FileFault::Replaced));
            }
            // Only the log is ever shortened; the database only grows.
            if at == 0 {
                if meta.len() < self.length.fetch_max(meta.len(), Ordering::Relaxed) {
                    return Err(lost(FileFault::CutOff));
                }
                written = Some(moment(&meta));
            }
        }
        Ok(written)
    }
}

fn displaced(displaced: Displaced) -> Error {
    Error::Storage { kind: StorageKind::Displaced, step: "find its file", source: Arc::new(displaced) }
}

fn moment(meta: &std::fs::Metadata) -> Moment {
    (meta.mtime(), meta.mtime_nsec())
}

fn identity(meta: &std::fs::Metadata) -> Identity {
    Identity { device: meta.dev(), inode: meta.ino() }
}
