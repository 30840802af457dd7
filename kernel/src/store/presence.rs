//! Whether the files of a board are still the ones that its path names: what is written to a file that was removed or
//! replaced is lost with it.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::error::{Error, StorageKind};

/// What has become of a board's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Removed,
    Replaced,
    CutOff,
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
}

impl Presence {
    /// Notes which files a path names, right after they were opened.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let named = |end: &str| {
            let mut file = path.as_os_str().to_owned();
            file.push(end);
            PathBuf::from(file)
        };
        let files = ["", "-wal", "-shm"].map(|end| {
            let file = named(end);
            let identity = std::fs::metadata(&file).ok().map(|meta| identity(&meta));
            (file, identity)
        });
        Ok(Self { files, length: AtomicU64::new(std::fs::metadata(path)?.len()) })
    }

    /// Refuses where one of them is gone, another one, or cut off.
    pub(crate) fn require(&self) -> Result<(), Error> {
        self.look().map_err(|displaced| Error::Storage {
            kind: StorageKind::Displaced,
            step: "find its file",
            source: Arc::new(displaced),
        })
    }

    fn look(&self) -> Result<(), Displaced> {
        for (at, (path, known)) in self.files.iter().enumerate() {
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
            if at == 0 && meta.len() < self.length.fetch_max(meta.len(), Ordering::Relaxed) {
                return Err(lost(Fate::CutOff));
            }
        }
        Ok(())
    }
}

fn identity(meta: &std::fs::Metadata) -> Identity {
    Identity { device: meta.dev(), inode: meta.ino() }
}
