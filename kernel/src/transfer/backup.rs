//! Backups: consistent copies of boards in use, and the restoration of a board from a copy.
//!
//! See decision 0017.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::bundle;
use crate::blobs::{Blobs, Lack};
use crate::model::clock::Timestamp;
use crate::model::id::{BoardId, RunId};
use crate::store::copy::{advance, copy_foreign, migrate_copy, name_of, stands_alone};
use crate::store::create;
use crate::store::files::{draft_path, put_aside, put_in_place, sync, sync_dir, with_end};
use crate::store::marker;
use crate::store::open_error::OpenError;
use crate::store::tx::Database;
use crate::store::values::{WorkspaceRule, unfit_rows_of_copy};

/// Treatment of an existing file with the name of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The file is kept, and the backup refused.
    Keep,
    /// The backup replaces the file.
    Replace,
}

/// Result of a backup.
#[derive(Clone, Debug, PartialEq)]
pub struct BackedUp {
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Number of attached files in it.
    pub files: u64,
    /// Attachments whose bytes are not in it.
    pub lacks: Vec<Lack>,
}

/// Result of a restoration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Id of the restored board.
    pub board: BoardId,
    /// Path of the replaced file; none if there was no file.
    pub replaced: Option<PathBuf>,
    /// Details that were given to the backup for human readers; none for a backup without them.
    pub details: Option<String>,
    /// Descriptions of restored rows that no board has.
    pub unfit: Vec<String>,
}

/// Copies the board at `path`, at one consistent moment, into the file `to`, with the attached files and with `details`
/// for human readers. The board may be in use, and no sweep runs in the meantime. The copy is complete and durable before
/// it gets its name.
///
/// # Errors
/// [`OpenError::Exists`] for a file that has to be kept; [`OpenError::Corrupt`] for a damaged board.
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
    let blobs = Blobs::of_board(path);
    // Sweeps are prevented before the copy begins, so that all files it names stay.
    let unswept = blobs.unswept().map_err(|error| bundle::unkept(&blobs, error))?;
    let draft = draft_path(to);
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

/// Conditions of a restoration.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct Terms<'a> {
    /// Highest number of a run that is in use around the board.
    pub runs: RunId,
    pub now: Timestamp,
    /// Rule for the text of a workspace.
    pub workspace: WorkspaceRule<'a>,
    pub unfit: UnfitRows,
}

/// Treatment of rows that no board has, in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitRows {
    Refused,
    /// The rows are restored as they are.
    Kept,
}

/// Replaces the board at `path` by the backup `from`. The attached files come first, so that a crash leaves one of the
/// two boards complete. The replaced file is kept beside it. No process may have the board open.
///
/// New runs get numbers above `terms.runs` and above the numbers of the replaced board, because directories and logs of
/// runs that the backup does not know may still exist. `passed` is called after each step.
///
/// # Errors
/// Any fault of the backup, also of the values of its rows. The board is then unchanged.
pub fn restore_board(
    path: &Path,
    from: &Path,
    terms: &Terms<'_>,
    passed: &dyn Fn(&'static str),
) -> Result<Restored, OpenError> {
    let draft = draft_path(path);
    let made = copy_foreign(from, &draft).and_then(|()| {
        passed("restore-copied");
        let details = bundle::unpack(&draft, &Blobs::of_board(path))?;
        passed("restore-files");
        // The readers of rows know the columns of the latest schema only.
        migrate_copy(&draft)?;
        let unfit = unfit_rows_of_copy(&draft, terms.workspace)?;
        if terms.unfit == UnfitRows::Refused && !unfit.is_empty() {
            return Err(OpenError::Unfit { path: from.to_owned(), rows: unfit });
        }
        Ok((advance(&draft, path, terms.runs)?, details, unfit))
    });
    let (board, details, unfit) = match made {
        Ok(made) => made,
        Err(error) => {
            // The caller needs the first error, not one of the cleanup.
            drop(create::clear(&draft));
            return Err(error);
        }
    };
    let replaced = keep_replaced(path, board, terms.now)?;
    passed("restore-kept");
    put_in_place(&draft, path, "put the backup in the place of")?;
    passed("restore-placed");
    marker::write(path, board, Some(&name_of(path)?))?;
    Ok(Restored { board, replaced, details, unfit })
}

/// Gives a board that `next` will replace a second name. A file that is complete without a log stays in its place until
/// then. A file with a log that cannot be merged is moved away with its log.
fn keep_replaced(path: &Path, next: BoardId, now: Timestamp) -> Result<Option<PathBuf>, OpenError> {
    let aside = with_end(path, &format!(".replaced-{}", now.as_micros()));
    if !stands_alone(path) || fs::hard_link(path, &aside).is_err() {
        return put_aside(path, "replaced", now);
    }
    let marker_path = marker::path(path);
    if marker::read(&marker_path).is_ok_and(|marked| marked.is_some_and(|board| board != next)) {
        // Without a marker either board is accepted; with the marker of the other board, it would be refused.
        fs::remove_file(&marker_path).map_err(|source| OpenError::Io {
            step: "remove",
            path: marker_path,
            source,
        })?;
    }
    sync_dir(path)?;
    Ok(Some(aside))
}

fn publish(draft: &Path, to: &Path, existing: Existing) -> Result<u64, OpenError> {
    let size = sync(draft)?;
    let placed = match existing {
        // A link never replaces a file that another process has just created.
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
