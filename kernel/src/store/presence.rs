//! Whether the files of a board are still the ones that its path names, with what its writer has put there: what is written to
//! a file that was removed, replaced or overwritten is lost with it.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::files::with_end;
use crate::model::error::{Error, StorageKind};

/// What has become of a board's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Removed,
    Replaced,
    CutOff,
    Overwritten,
}

/// A file of a board is not the one that is open any more.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Displaced {
    path: PathBuf,
    fate: Fate,
}

impl fmt::Display for Displaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.fate {
            Fate::Removed => write!(f, "{path} was removed while it is in use"),
            Fate::Replaced => write!(f, "{path} was replaced by another file while it is in use"),
            Fate::CutOff => write!(f, "{path} was cut off while it is in use"),
            Fate::Overwritten => write!(f, "{path} was overwritten by something else while it is in use"),
        }
    }
}

impl std::error::Error for Displaced {}

/// A file by what it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// The files of an open board: the database, its log and the log's index.
#[derive(Debug)]
pub(crate) struct Presence {
    files: [(PathBuf, Option<Identity>); 3],
    /// The longest that the database has been. Nothing here makes it shorter.
    length: AtomicU64,
    written: Mutex<Written>,
}

/// When a file was last written to, as its file system says it.
type Moment = (i64, i64);

/// Who has written to the database. Its writer does so at commits and when it gives the log back; who else does is another
/// program, such as a person's `sqlite3`, or `cp`.
#[derive(Debug, Default)]
struct Written {
    /// When its writer last had.
    by_writer: Option<Moment>,
    /// When somebody else had who left another board there, or none.
    by_stranger: Option<Moment>,
}

impl Presence {
    /// Notes which files a path names, right after they were opened.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let files = ["", "-wal", "-shm"].map(|end| {
            let file = with_end(path, end);
            let identity = std::fs::metadata(&file).ok().map(|meta| identity(&meta));
            (file, identity)
        });
        let meta = std::fs::metadata(path)?;
        let written = Written { by_writer: Some(moment(&meta)), by_stranger: None };
        Ok(Self { files, length: AtomicU64::new(meta.len()), written: Mutex::new(written) })
    }

    /// Refuses where one of the files is not the one that is open; else notes that the writer may have written to the database.
    pub(crate) fn require_written(&self) -> Result<(), Error> {
        if let Some(now) = self.look(self.files.len()).map_err(displaced)? {
            self.written().by_writer = Some(now);
        }
        Ok(())
    }

    /// Refuses where the database is not the one that is open, and where somebody else has written to it, unless `is_own` finds that it
    /// still holds this board. It is looked at once for each time that it was written to.
    ///
    /// The files beside it are looked at when something was written: nothing is acknowledged before that.
    pub(crate) fn require_own(&self, is_own: impl FnOnce() -> bool) -> Result<(), Error> {
        let now = self.look(1).map_err(displaced)?;
        let mut written = self.written();
        if now.is_none() || now == written.by_writer {
            written.by_stranger = None;
            return Ok(());
        }
        if now != written.by_stranger {
            if is_own() {
                *written = Written { by_writer: now, by_stranger: None };
                return Ok(());
            }
            written.by_stranger = now;
        }
        drop(written);
        self.require_known()
    }

    /// Refuses where somebody else is known to have written to the database.
    pub(crate) fn require_known(&self) -> Result<(), Error> {
        match self.written().by_stranger {
            None => Ok(()),
            Some(_) => Err(displaced(Displaced { path: self.files[0].0.clone(), fate: Fate::Overwritten })),
        }
    }

    fn written(&self) -> std::sync::MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses where one of them is gone, another one, or cut off.
    pub(crate) fn require(&self) -> Result<(), Error> {
        self.look(self.files.len()).map(drop).map_err(displaced)
    }

    /// Looks at the first of the files, each once. Returns when the database was last written to, where that can be seen.
    fn look(&self, count: usize) -> Result<Option<Moment>, Displaced> {
        let mut written = None;
        for (at, (path, known)) in self.files.iter().enumerate().take(count) {
            let Some(known) = known else { continue };
            let lost = |fate| Displaced { path: path.clone(), fate };
            let meta = match std::fs::metadata(path) {
                Ok(meta) => meta,
                // Whatever else keeps it from being seen keeps nobody from finding what is written.
                Err(error) if error.kind() != io::ErrorKind::NotFound => continue,
                Err(_) => return Err(lost(Fate::Removed)),
            };
            if identity(&meta) != *known {
                return Err(lost(Fate::Replaced));
            }
            // The log is given back when it is done with; the database grows and no more.
            if at == 0 {
                if meta.len() < self.length.fetch_max(meta.len(), Ordering::Relaxed) {
                    return Err(lost(Fate::CutOff));
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
