//! Creates a board: builds the whole database under a draft name, links it to its path, then writes the marker that a
//! board has existed there.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::files::{draft_path, with_end};
use super::open::{early_reader, look, prepare};
use super::open_error::{OpenError, sqlite, unreadable};
use super::{identity, marker, migrate};
use crate::model::clock::{Clock, Timestamp};
use crate::model::entropy::Entropy;
use crate::model::id::{BoardId, BoardName};

/// Creates a new board. Its directory must exist.
///
/// # Errors
/// [`OpenError::Exists`] if the board exists; [`OpenError::Missing`] if it has existed and its file is gone.
pub fn create_board(
    path: &Path,
    name: &BoardName,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<BoardId, OpenError> {
    if path.symlink_metadata().is_ok() {
        return Err(OpenError::Exists { path: path.to_owned() });
    }
    if marker::read(&marker::path(path))?.is_some() {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    let mut bytes = [0; 16];
    entropy.fill(&mut bytes);
    let id = BoardId(uuid::Builder::from_random_bytes(bytes).into_uuid());
    let draft = draft_path(path);
    let made = build(&draft, id, name, clock.now()).and_then(|()| {
        // Unlike rename(2), link(2) fails if another process has just created the board.
        fs::hard_link(&draft, path).map_err(|source| {
            if source.kind() == io::ErrorKind::AlreadyExists {
                OpenError::Exists { path: path.to_owned() }
            } else {
                OpenError::Io { step: "put in place", path: path.to_owned(), source }
            }
        })
    });
    let cleared = clear(&draft);
    made?;
    cleared?;
    // A crash before this line leaves a board without a marker; `ensure_board` then writes it.
    marker::write(path, id, Some(name))?;
    Ok(id)
}

/// Returns the board at `path`, and creates it if none ever existed there.
///
/// # Errors
/// The board has existed and is missing or unusable. Such a board is never replaced.
pub fn ensure_board(
    path: &Path,
    name: &BoardName,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<BoardId, OpenError> {
    match look(path) {
        Ok(()) => existing(path),
        Err(OpenError::Missing { path: missing }) => {
            if marker::read(&marker::path(path))?.is_some() {
                return Err(OpenError::Missing { path: missing });
            }
            // Another process may have created the board since the look.
            match create_board(path, name, clock, entropy) {
                Err(OpenError::Exists { .. }) => existing(path),
                other => other,
            }
        }
        Err(other) => Err(other),
    }
}

/// Returns true if a board and its marker are at `path`, so that opening it is enough.
///
/// # Errors
/// The marker cannot be read.
pub fn is_marked(path: &Path) -> Result<bool, OpenError> {
    Ok(look(path).is_ok() && marker::read(&marker::path(path))?.is_some())
}

fn existing(path: &Path) -> Result<BoardId, OpenError> {
    let conn = early_reader(path)?;
    let corrupt = |error| unreadable(path, &error);
    let id = identity::board_id(&conn).map_err(corrupt)?;
    if marker::read(&marker::path(path))?.is_none() {
        let name = identity::board_name(&conn).map_err(corrupt)?;
        marker::write(path, id, Some(&name))?;
    }
    Ok(id)
}

/// Removes the draft, and the journal, log and index that `SQLite` has made beside it.
pub(crate) fn clear(draft: &Path) -> Result<(), OpenError> {
    for end in ["", "-wal", "-shm", "-journal"] {
        let leftover = with_end(draft, end);
        match fs::remove_file(&leftover) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OpenError::io("remove", &leftover)(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Creates an empty file for a database, with mode 0600. `SQLite` gives the mode of the database to the log and the
/// index beside it.
pub(super) fn reserve(draft: &Path) -> Result<(), OpenError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)
        .map(drop)
        .map_err(|source| OpenError::Io { step: "create", path: draft.to_owned(), source })
}

pub(super) fn build(draft: &Path, id: BoardId, name: &BoardName, now: Timestamp) -> Result<(), OpenError> {
    reserve(draft)?;
    let fail = |error| sqlite("create", draft, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(draft, flags).map_err(fail)?;
    conn.pragma_update(None, "page_size", 4096).map_err(fail)?;
    conn.pragma_update(None, "application_id", migrate::APPLICATION_ID).map_err(fail)?;
    prepare(&conn).map_err(fail)?;
    migrate::to_latest(&mut conn, "create", draft)?;
    identity::insert(&conn, id, name, now).map_err(fail)?;
    conn.close().map_err(|(_, error)| fail(error))
}
