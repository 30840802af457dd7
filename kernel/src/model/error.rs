//! Errors of a board: each has a stable class, a reason, and a hint for the reader.

use std::io::ErrorKind;
use std::sync::Arc;

use crate::model::id::TaskId;
use crate::model::missing::Missing;
use crate::model::parse_error::ParseError;
use crate::model::status::Status;
use crate::model::words::words;

words! {
    /// Stable class of an error, the same in the CLI, the API and the tools.
    "error code"
    ErrorCode {
        /// The named thing does not exist, or the caller may not know of it.
        NotFound => "not_found",
        /// The current state does not allow the change.
        Conflict => "conflict",
        /// The request itself is wrong.
        Invalid => "invalid",
        /// The caller may not do it.
        Forbidden => "forbidden",
        /// A limit of the caller's run or tenant is reached.
        Exhausted => "exhausted",
        /// The store cannot serve the request at the moment; a retry may succeed.
        Unavailable => "unavailable",
        /// The board is damaged, or the program has a fault.
        Internal => "internal",
    }
}

words! {
    /// Kind of failure of the store.
    "storage kind"
    StorageKind {
        /// The disk has no space left.
        Full => "full",
        /// The disk failed to read or write.
        Io => "io",
        /// Another program owns the lock.
        Busy => "busy",
        /// The file's content is not a valid database.
        Corrupt => "corrupt",
        /// The file or its directory cannot be written.
        ReadOnly => "read_only",
        /// The board's file was removed or replaced while it is open.
        Displaced => "displaced",
        /// The new row breaks a constraint of the schema.
        Constraint => "constraint",
        /// Anything else.
        Other => "other",
    }
}

/// Name of the step whose failure leaves open whether the write was kept.
pub(crate) const COMMIT: &str = "commit";

/// Name of the step that writes an export. Its failures concern the export's destination and not the board.
pub(crate) const EXPORT: &str = "write the export";

/// Reason why a call was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(clippy::error_impl_error, reason = "the one error of every call: kernel::Error")]
pub enum Error {
    /// The named thing does not exist, or the caller may not know of it.
    #[error("no such {what}: {id}")]
    NotFound { what: Missing, id: String },
    /// The state of the board does not allow the change.
    #[error("{message}")]
    Conflict { message: String, hint: Option<String> },
    /// The state machine has no such transition.
    #[error("cannot {change} {task}: its status is {status}")]
    Illegal { task: TaskId, status: Status, change: &'static str, hint: Option<String> },
    /// A field of the request is wrong.
    #[error("{field}: {message}")]
    Invalid { field: &'static str, message: String, hint: Option<String> },
    /// The caller may not do it.
    #[error("{message}")]
    Forbidden { message: String, hint: Option<String> },
    /// A limit of the caller's run or tenant is reached.
    #[error("{message}")]
    Exhausted {
        /// Names the limit, the count and the maximum.
        message: String,
        hint: String,
    },
    /// The store failed.
    #[error("the board's store failed to {step}: {source}")]
    Storage { kind: StorageKind, step: &'static str, source: Arc<dyn std::error::Error + Send + Sync> },
    /// The writer thread has ended, or a job on it panicked.
    #[error("the board's writer failed: {message}")]
    Writer { message: String },
}

impl From<ErrorKind> for StorageKind {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum that grows")]
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StorageKind::Full,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StorageKind::ReadOnly,
            _ => StorageKind::Io,
        }
    }
}

impl Error {
    /// Returns true if the board has a page or a value that cannot be read. Nothing else of the host is affected.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Storage { kind: StorageKind::Corrupt, .. })
    }

    /// Returns the stable class of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Error::NotFound { .. } => ErrorCode::NotFound,
            Error::Conflict { .. } | Error::Illegal { .. } => ErrorCode::Conflict,
            Error::Invalid { .. } => ErrorCode::Invalid,
            Error::Forbidden { .. } => ErrorCode::Forbidden,
            Error::Exhausted { .. } => ErrorCode::Exhausted,
            Error::Storage { kind, .. } => match kind {
                StorageKind::Full
                | StorageKind::Io
                | StorageKind::Busy
                | StorageKind::ReadOnly
                | StorageKind::Displaced => ErrorCode::Unavailable,
                StorageKind::Corrupt | StorageKind::Constraint | StorageKind::Other => ErrorCode::Internal,
            },
            Error::Writer { .. } => ErrorCode::Internal,
        }
    }

    /// Returns the reader's next step, if there is one.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Error::NotFound { what, .. } => what.hint()?,
            Error::Conflict { hint, .. }
            | Error::Illegal { hint, .. }
            | Error::Invalid { hint, .. }
            | Error::Forbidden { hint, .. } => return hint.clone(),
            Error::Exhausted { hint, .. } => hint,
            Error::Storage { kind, step, .. } => match kind {
                StorageKind::Full if *step == EXPORT => {
                    "free some space on the file system that it is written to; what is there is not all of it"
                }
                StorageKind::ReadOnly if *step == EXPORT => {
                    "name a place that the user of this process may write to"
                }
                StorageKind::Full => "free some space on the board's file system; nothing was written",
                // A commit that could not be made durable may still stand in the log: a crash before the next write
                // finds it.
                StorageKind::Io if *step == COMMIT => {
                    "this write may have been kept: check before you repeat it, or repeat it with its request \
                     id; the kernel log has the disk's errors"
                }
                StorageKind::Io => {
                    "nothing was written: look at the kernel log for the disk's errors, then try again"
                }
                StorageKind::Busy => "another program holds the board's lock; try again",
                StorageKind::Displaced => {
                    "nothing more is acknowledged: move the same file back and it goes on by itself; else stop the supervisor, \
                     restore a backup with `supervisor restore <file>`, and start it again"
                }
                StorageKind::ReadOnly => "check the owner and mode of the board and its directory",
                StorageKind::Corrupt => "stop the supervisor and restore the board from a backup",
                StorageKind::Constraint | StorageKind::Other => return None,
            },
            Error::Writer { .. } => "restart the supervisor and look at its log",
        };
        Some(text.to_owned())
    }

    pub(crate) fn missing(what: Missing, id: impl std::fmt::Display) -> Self {
        Error::NotFound { what, id: id.to_string() }
    }

    /// Returns a refusal for the current state of a record.
    pub fn conflict(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Conflict { message: message.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn invalid(field: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Invalid { field, message: message.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn forbidden(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Forbidden { message: message.into(), hint: Some(hint.into()) }
    }
}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        Error::Invalid { field: error.what(), message: error.to_string(), hint: None }
    }
}
