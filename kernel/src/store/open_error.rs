//! Errors of opening a board, each with a hint.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::model::error::Error;

/// Limit on the rows that a message names.
const TOLD: usize = 5;

/// Reason why a board cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The board has existed and its file is gone, or it never existed.
    #[error("the board {} is missing", path.display())]
    Missing { path: PathBuf },
    /// The file has no bytes.
    #[error("the board {} is empty: its content is gone", path.display())]
    Empty { path: PathBuf },
    /// The file is cut off.
    #[error("the board {} is cut off: {length} bytes are left", path.display())]
    Truncated { path: PathBuf, length: u64 },
    /// The path is no regular file.
    #[error("{} is not a board: it is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    /// The file belongs to another program.
    #[error("{} is not a board: its application id is {application_id:#x}", path.display())]
    NotABoard { path: PathBuf, application_id: i32 },
    /// The file has a schema that this program has not made.
    #[error("{} is not a backup of this program: {difference}", path.display())]
    Foreign { path: PathBuf, difference: String },
    /// The file has rows that no board has.
    #[error("{} has values that no board has: {}", path.display(), listed(rows))]
    Unfit { path: PathBuf, rows: Vec<String> },
    /// The file is damaged.
    #[error("the board {} is damaged: {detail}", path.display())]
    Corrupt { path: PathBuf, detail: String },
    /// The board has a format from before release 0.1.0.
    #[error("the board {} has a format older than 0.1.0, which this program does not read", path.display())]
    OlderFormat { path: PathBuf },
    /// A newer program has migrated the board.
    #[error("the board {} has schema {found}, this program knows {known}", path.display())]
    NewerSchema { path: PathBuf, found: i64, known: i64 },
    /// The board has an older schema, and was opened only to read, without a migration.
    #[error("the board {} has schema {found} of an earlier release, this program reads {known}", path.display())]
    OlderSchema { path: PathBuf, found: i64, known: i64 },
    /// The marker beside the file names another board.
    #[error("the board {} is {found}, but {} names {expected}", path.display(), marker.display())]
    Mixed { path: PathBuf, marker: PathBuf, found: String, expected: String },
    /// The file may not be read or written.
    #[error("the board {} may not be opened: {source}", path.display())]
    Permission { path: PathBuf, source: io::Error },
    /// The file system failed.
    #[error("failed to {step} {}: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    #[error("failed to {step} the board {}: {source}", path.display())]
    Full { step: &'static str, path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    /// The board exists already.
    #[error("the board {} already exists", path.display())]
    Exists { path: PathBuf },
    #[error("failed to {step} the board {}: {source}", path.display())]
    Sqlite { step: &'static str, path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

impl OpenError {
    /// Returns the error of a failed step on a path.
    pub(crate) fn io(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { step, path, source }
    }

    /// Returns the hint for the operator.
    pub fn hint(&self) -> Option<String> {
        match self {
            OpenError::Missing { path } | OpenError::Empty { path } | OpenError::Truncated { path, .. } => {
                Some(format!(
                    "restore a backup with `supervisor restore <file>` in place of {}; to start over, remove its whole directory {}",
                    path.display(),
                    path.parent().unwrap_or(path).display()
                ))
            }
            OpenError::Corrupt { .. } => Some(
                "with the daemon stopped: `supervisor doctor --repair` mends it and keeps the damaged file, \
                 `supervisor restore <file>` restores a backup"
                    .to_owned(),
            ),
            OpenError::Foreign { .. } => Some(
                "its schema would act on every later statement of the board; restore a backup that `supervisor backup` has written and \
                 nothing else has changed"
                    .to_owned(),
            ),
            OpenError::Unfit { .. } => Some(
                "a daemon would act on these rows; restore a backup that `supervisor backup` has written and nothing else has changed, \
                 correct the rows in a copy of the file with sqlite3, or restore them as they are: --accept-rows"
                    .to_owned(),
            ),
            OpenError::NotABoard { path, .. } | OpenError::NotAFile { path } => {
                Some(format!("move {} away if it is yours, then create the board again", path.display()))
            }
            OpenError::OlderFormat { path } => Some(format!(
                "the program that has written it still reads it; to start over, move {} away and create the board again",
                path.parent().unwrap_or(path).display()
            )),
            OpenError::NewerSchema { .. } => {
                Some("use the newer supervisor, or restore an older backup".to_owned())
            }
            OpenError::OlderSchema { .. } => Some(
                "start the daemon of this release, which migrates it: supervisor daemon; a backup before that is what an earlier release can \
                 still read"
                    .to_owned(),
            ),
            OpenError::Mixed { marker, .. } => {
                Some(format!("put the right file back; if this is the one, remove {}", marker.display()))
            }
            OpenError::Permission { path, .. } => Some(format!(
                "run as the owner of {}, or give it back to the supervisor's user",
                path.display()
            )),
            OpenError::Full { path, .. } => Some(format!(
                "free some space on the file system of {}, or choose another place, and try again",
                path.display()
            )),
            OpenError::Exists { .. } => Some("use it, or choose another name".to_owned()),
            OpenError::Io { .. } | OpenError::Sqlite { .. } => None,
        }
    }
}

/// Returns the first rows of a list, and the number of the others.
fn listed(rows: &[String]) -> String {
    let told = rows.iter().take(TOLD).cloned().collect::<Vec<_>>().join("; ");
    let more = rows.len().saturating_sub(TOLD);
    if more > 0 { format!("{told}; and {more} more") } else { told }
}

/// Returns the error for a board whose own rows cannot be read.
pub(super) fn unreadable(path: &Path, error: &Error) -> OpenError {
    OpenError::Corrupt { path: path.to_owned(), detail: error.to_string() }
}

pub(crate) fn sqlite(step: &'static str, path: &Path, error: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Corrupt { path, detail: error.to_string() }
        }
        // Only the limit on the time of a foreign file interrupts a statement.
        Some(ErrorCode::OperationInterrupted) => {
            OpenError::Corrupt { path, detail: "a statement on it takes too long".to_owned() }
        }
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            OpenError::Permission { path, source: io::Error::other(error) }
        }
        Some(ErrorCode::DiskFull) => OpenError::Full { step, path, source: Box::new(error) },
        _ => OpenError::Sqlite { step, path, source: Box::new(error) },
    }
}
