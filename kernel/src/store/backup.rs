//! A consistent copy of a board that is in use, and a board put back from one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::open::{self, OpenError, sqlite};
use super::{bundle, check, create, meta, migrate};
use crate::blobs::{Blobs, Lack};
use crate::model::clock::Timestamp;
use crate::model::id::{BoardId, RunId};

/// What to do where the file of a backup exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, and the backup refused.
    Keep,
    /// The backup takes its place.
    Replace,
}

/// A backup that is there now.
#[derive(Clone, Debug, PartialEq)]
pub struct BackedUp {
    /// The length of its file in bytes.
    pub bytes: u64,
    /// How many attached files are in it.
    pub files: u64,
    /// The attachments that it has no bytes for.
    pub lacks: Vec<Lack>,
}

/// A board that was put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The board that is there now.
    pub board: BoardId,
    /// Where the replaced file is; none where there was no file.
    pub replaced: Option<PathBuf>,
    /// What people said of it, as it was given to the backup; none where the backup carries nothing of the kind.
    pub details: Option<String>,
}

/// Copies the board at `path`, as of one moment, into the file `to`, with the bytes of what is attached and with
/// `details`, which is for people. It may be in use; what is attached is not swept meanwhile. The copy is whole and durable
/// before it has its name.
///
/// # Errors
/// [`OpenError::Exists`] for a file that is to be kept; [`OpenError::Corrupt`] for a board that is damaged.
pub fn backup_board(
    path: &Path,
    to: &Path,
    existing: Existing,
    details: &str,
) -> Result<BackedUp, OpenError> {
    let source = open::reader(path)?;
    if existing == Existing::Keep && to.symlink_metadata().is_ok() {
        return Err(OpenError::Exists { path: to.to_owned() });
    }
    let blobs = Blobs::beside(path);
    // From before the moment of the copy on, so that all that it names stays.
    let unswept = blobs.unswept().map_err(|error| bundle::unkept(&blobs, error))?;
    let draft = draft_beside(to);
    let copied = copy(&source, &draft).and_then(|()| {
        let (files, lacks) = bundle::pack(&draft, &blobs, details)?;
        drop(unswept);
        let bytes = publish(&draft, to, existing)?;
        Ok(BackedUp { bytes, files, lacks })
    });
    let cleared = create::clear(&draft);
    let backup = copied?;
    cleared?;
    Ok(backup)
}

/// Puts the backup `from` in the place of the board at `path`, after its files, so that a crash on the way leaves the one
/// board or the other. The replaced file is kept beside it. No process may have
/// the board open. New runs get numbers above `runs` and above those of the replaced board: directories and logs of
/// runs that the backup does not know may still be there. `passed` is told of each step that is done.
///
/// # Errors
/// Whatever is wrong with the backup; the board is as it was then.
pub fn restore_board(
    path: &Path,
    from: &Path,
    runs: RunId,
    now: Timestamp,
    passed: &dyn Fn(&'static str),
) -> Result<Restored, OpenError> {
    open::look(from)?;
    let source = open::foreign(from)?;
    let draft = draft_beside(path);
    let made = copy(&source, &draft).and_then(|()| {
        passed("restore-copied");
        let details = bundle::unpack(&draft, &Blobs::beside(path))?;
        passed("restore-files");
        Ok((advance(&draft, path, runs)?, details))
    });
    let (board, details) = match made {
        Ok(made) => made,
        Err(error) => {
            // The first failure is what the caller needs to hear.
            drop(create::clear(&draft));
            return Err(error);
        }
    };
    let replaced = keep_beside(path, board, now)?;
    passed("restore-kept");
    fs::rename(&draft, path).map_err(|source| OpenError::Io {
        step: "put the backup in the place of",
        path: path.to_owned(),
        source,
    })?;
    sync_dir(path)?;
    passed("restore-placed");
    let name =
        open::foreign(path).and_then(|conn| meta::board_name(&conn).map_err(|e| unreadable(path, &e)))?;
    create::write_marker(path, board, Some(&name))?;
    Ok(Restored { board, replaced, details })
}

/// Gives a board that is about to be replaced by `next` a second name. A file that stands alone stays in its place until
/// the other takes it; one with a log that cannot be put into it is moved away with the log.
fn keep_beside(path: &Path, next: BoardId, now: Timestamp) -> Result<Option<PathBuf>, OpenError> {
    let aside = with_end(path, &format!(".replaced-{}", now.as_micros()));
    if !stands_alone(path) || fs::hard_link(path, &aside).is_err() {
        return put_aside(path, "replaced", now);
    }
    let marker = create::marker_path(path);
    if create::read_marker(&marker).is_ok_and(|marked| marked.is_some_and(|board| board != next)) {
        // Either board is accepted without one; with the other's it would be refused.
        fs::remove_file(&marker).map_err(|source| OpenError::Io { step: "remove", path: marker, source })?;
    }
    sync_dir(path)?;
    Ok(Some(aside))
}

/// Puts what is in the log of a board into its file, as far as that can be done. Returns whether the file is all of it.
fn stands_alone(path: &Path) -> bool {
    let logs = || ["-wal", "-journal"].iter().any(|end| with_end(path, end).symlink_metadata().is_ok());
    if logs()
        && let Ok(conn) = open::foreign_writer(path)
    {
        // What cannot be done leaves the log there, which is looked at next.
        drop(conn.pragma_update(None, "journal_mode", "DELETE"));
        drop(conn.close());
    }
    !logs()
}

/// Moves a board's file away under a name that tells why and when. A crash on the way leaves a board that is refused as
/// missing, never one without its log.
pub(super) fn put_aside(path: &Path, why: &str, now: Timestamp) -> Result<Option<PathBuf>, OpenError> {
    let fail = |source| OpenError::Io { step: "move away", path: path.to_owned(), source };
    let aside = with_end(path, &format!(".{why}-{}", now.as_micros()));
    let mut moved = None;
    for end in ["", "-wal", "-shm", "-journal"] {
        match fs::rename(with_end(path, end), with_end(&aside, end)) {
            Ok(()) if end.is_empty() => moved = Some(aside.clone()),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
    }
    sync_dir(path)?;
    Ok(moved)
}

/// Copies a database page by page; what comes out is one file.
pub(super) fn copy(source: &Connection, draft: &Path) -> Result<(), OpenError> {
    create::reserve(draft)?;
    let fail = |error| sqlite("copy", draft, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut target = Connection::open_with_flags(draft, flags).map_err(fail)?;
    {
        let backup = Backup::new(source, &mut target).map_err(fail)?;
        // All at once: a copy in parts begins anew whenever somebody writes in between.
        if backup.step(-1).map_err(fail)? != StepResult::Done {
            let source = io::ErrorKind::WouldBlock.into();
            return Err(OpenError::Io { step: "copy", path: draft.to_owned(), source });
        }
    }
    // Without a log of its own the copy is complete in one file.
    target.pragma_update(None, "journal_mode", "DELETE").map_err(fail)?;
    let faults = check::faults(&target, draft)?;
    target.close().map_err(|(_, error)| fail(error))?;
    match faults.first() {
        None => Ok(()),
        Some(fault) => Err(OpenError::Corrupt { path: draft.to_owned(), detail: fault.clone() }),
    }
}

/// Brings a copied board up to date, and its counters past what is in use around it.
fn advance(draft: &Path, path: &Path, runs: RunId) -> Result<BoardId, OpenError> {
    let fail = |error| sqlite("prepare", draft, error);
    let mut conn = open::foreign_writer(draft)?;
    migrate::migrations().to_latest(&mut conn).map_err(|source| OpenError::Sqlite {
        step: "migrate",
        path: draft.to_owned(),
        source: Box::new(source),
    })?;
    // A board that cannot be read any more has no counters to respect.
    let former = open::foreign(path).ok();
    for table in ["task_runs", "task_events", "task_comments", "task_attachments", "holds"] {
        let known = former.as_ref().and_then(|conn| counter(conn, table).ok()).unwrap_or(0);
        let floor = if table == "task_runs" { known.max(runs.get()) } else { known };
        if counter(&conn, table).map_err(fail)? < floor {
            conn.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table]).map_err(fail)?;
            conn.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, floor))
                .map_err(fail)?;
        }
    }
    let board = meta::board_id(&conn).map_err(|e| unreadable(draft, &e))?;
    conn.close().map_err(|(_, error)| fail(error))?;
    sync(draft)?;
    Ok(board)
}

fn counter(conn: &Connection, table: &str) -> rusqlite::Result<i64> {
    conn.query_row("SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = ?1", [table], |row| {
        row.get(0)
    })
}

fn publish(draft: &Path, to: &Path, existing: Existing) -> Result<u64, OpenError> {
    let size = sync(draft)?;
    let placed = match existing {
        // A link never replaces what somebody has just made.
        Existing::Keep => fs::hard_link(draft, to),
        Existing::Replace => fs::rename(draft, to),
    };
    placed.map_err(|source| {
        let path = to.to_owned();
        if source.kind() == io::ErrorKind::AlreadyExists {
            OpenError::Exists { path }
        } else {
            OpenError::Io { step: "put in place", path, source }
        }
    })?;
    sync_dir(to)?;
    Ok(size)
}

fn sync(file: &Path) -> Result<u64, OpenError> {
    File::open(file)
        .and_then(|file| file.sync_all().and_then(|()| file.metadata()))
        .map(|meta| meta.len())
        .map_err(|source| OpenError::Io { step: "write", path: file.to_owned(), source })
}

pub(super) fn sync_dir(file: &Path) -> Result<(), OpenError> {
    let dir = match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        Some(_) | None => Path::new("."),
    };
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|source| OpenError::Io {
        step: "write",
        path: dir.to_owned(),
        source,
    })
}

pub(super) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(end);
    name.into()
}

pub(super) fn draft_beside(path: &Path) -> PathBuf {
    with_end(path, &format!(".new-{}", uuid::Uuid::new_v4().simple()))
}

pub(super) fn unreadable(path: &Path, error: &crate::Error) -> OpenError {
    OpenError::Corrupt { path: path.to_owned(), detail: error.to_string() }
}
