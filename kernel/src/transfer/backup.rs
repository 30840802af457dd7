//! A consistent copy of a board that is in use, and a board put back from one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::bundle;
use crate::blobs::{Blobs, Lack};
use crate::model::clock::Timestamp;
use crate::model::id::{BoardId, RunId};
use crate::store::copy::{advance, copy_foreign, name_of, stands_alone};
use crate::store::create;
use crate::store::files::{draft_beside, put_aside, put_in_place, sync, sync_dir, with_end};
use crate::store::marker;
use crate::store::open_error::OpenError;
use crate::store::tx::Database;

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
    let source = Database::reader(path)?;
    if existing == Existing::Keep && to.symlink_metadata().is_ok() {
        return Err(OpenError::Exists { path: to.to_owned() });
    }
    let blobs = Blobs::beside(path);
    // From before the moment of the copy on, so that all that it names stays.
    let unswept = blobs.unswept().map_err(|error| bundle::unkept(&blobs, error))?;
    let draft = draft_beside(to);
    let copied = source.copy(&draft).and_then(|()| {
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
/// runs that the backup does not know may still be there. `passed` is called after each step.
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
    let draft = draft_beside(path);
    let made = copy_foreign(from, &draft).and_then(|()| {
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
    put_in_place(&draft, path, "put the backup in the place of")?;
    passed("restore-placed");
    marker::write(path, board, Some(&name_of(path)?))?;
    Ok(Restored { board, replaced, details })
}

/// Gives a board that is about to be replaced by `next` a second name. A file that stands alone stays in its place until
/// the other takes it; one with a log that cannot be put into it is moved away with the log.
fn keep_beside(path: &Path, next: BoardId, now: Timestamp) -> Result<Option<PathBuf>, OpenError> {
    let aside = with_end(path, &format!(".replaced-{}", now.as_micros()));
    if !stands_alone(path) || fs::hard_link(path, &aside).is_err() {
        return put_aside(path, "replaced", now);
    }
    let beside = marker::path(path);
    if marker::read(&beside).is_ok_and(|marked| marked.is_some_and(|board| board != next)) {
        // Either board is accepted without one; with the other's it would be refused.
        fs::remove_file(&beside).map_err(|source| OpenError::Io { step: "remove", path: beside, source })?;
    }
    sync_dir(path)?;
    Ok(Some(aside))
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
