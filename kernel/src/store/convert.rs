//! Conversion between model types and columns, and between errors of `SQLite` and errors of the board.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, Row, RowIndex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model;
use crate::model::actor::ActorKind;
use crate::model::budget::PayerKind;
use crate::model::clock::Timestamp;
use crate::model::commits::CommitMode;
use crate::model::error::{Error, StorageKind};
use crate::model::hold::{HoldKind, HoldScope};
use crate::model::id::{
    ApprovalClass, AttachmentId, BoardId, BoardName, CommentId, Digest, EventId, LetterId, PluginName,
    Profile, RunId, ScheduleName, TaskId, Tenant,
};
use crate::model::letter::{LetterState, NoticeKind};
use crate::model::message::MessageState;
use crate::model::outcome::{ApprovalState, BlockKind, Outcome, StopReason};
use crate::model::proposal::ProposalKind;
use crate::model::run::{Holder, Purpose, RunStatus};
use crate::model::schedule::TickOutcome;
use crate::model::spent::MOST;
use crate::model::status::Status;
use crate::model::time_limit::LimitSource;
use crate::model::workspace::Workspace;

macro_rules! text_columns {
    ($($name:ty),+) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.as_str().as_bytes())))
            }
        }
    )+ from_text!($($name),+);};
}

macro_rules! from_text {
    ($($name:ty),+) => {$(
        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_str()?.parse().map_err(FromSqlError::other)
            }
        }
    )+};
}

macro_rules! number_columns {
    ($($name:ty),+) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(self.0))
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_i64().map(Self)
            }
        }
    )+};
}

text_columns!(
    TaskId,
    Digest,
    Profile,
    BoardName,
    Status,
    ApprovalClass,
    ApprovalState,
    CommitMode,
    Outcome,
    BlockKind,
    StopReason,
    Holder,
    Purpose,
    MessageState,
    NoticeKind,
    LetterState,
    RunStatus,
    ActorKind,
    HoldKind,
    HoldScope,
    PayerKind,
    LimitSource,
    PluginName,
    ScheduleName,
    ProposalKind,
    TickOutcome
);
from_text!(BoardId);
number_columns!(RunId, EventId, CommentId, AttachmentId, LetterId);

impl ToSql for Workspace {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_str().into())
    }
}

impl FromSql for Workspace {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str().map(Self::stored)
    }
}

impl ToSql for Timestamp {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.as_micros()))
    }
}

impl FromSql for Timestamp {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(Timestamp::from_micros)
    }
}

// Decision 0072.
/// Tenant of a row as it is stored: its name, or the empty text for none, which is no valid name. [`text_or_none`] reads
/// it.
///
/// No tenant column is NULL. NULLs are distinct in an index, so two tasks without a tenant could have the same
/// idempotency key. A comparison with NULL is never true, so a page could not continue after a row without a tenant.
pub(crate) struct StoredTenant<'a>(pub(crate) Option<&'a Tenant>);

impl StoredTenant<'_> {
    fn text(&self) -> &str {
        self.0.map_or("", Tenant::as_str)
    }
}

impl ToSql for StoredTenant<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.text().as_bytes())))
    }
}

impl From<StoredTenant<'_>> for model::cell::Cell {
    fn from(tenant: StoredTenant<'_>) -> Self {
        tenant.text().into()
    }
}

/// Reader of a row's columns, in the order of the statement. Finding each column by name would cost more than reading it.
pub(crate) struct Columns<'r, 's> {
    row: &'r Row<'s>,
    next: Cell<usize>,
}

impl<'r, 's> Columns<'r, 's> {
    /// Starts with the first column.
    pub(crate) fn new(row: &'r Row<'s>) -> Self {
        Self { row, next: Cell::new(0) }
    }

    /// Starts after the columns of a list.
    pub(crate) fn after(row: &'r Row<'s>, list: &str) -> Self {
        Self { row, next: Cell::new(list.split(',').count()) }
    }

    /// Reads the next column. `name` is its name, which debug builds verify.
    pub(crate) fn get<T: FromSql>(&self, name: &'static str) -> rusqlite::Result<T> {
        self.row.get(self.advance(name))
    }

    /// Reads the next column as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, name: &'static str) -> rusqlite::Result<Option<T>> {
        json(self.row, self.advance(name))
    }

    /// Reads the next column; the empty text means none.
    pub(crate) fn optional<T: std::str::FromStr>(&self, name: &'static str) -> rusqlite::Result<Option<T>>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        text_or_none(self.row, self.advance(name))
    }

    /// Reads the next column as a number that is not negative.
    pub(crate) fn count(&self, name: &'static str) -> rusqlite::Result<u64> {
        Ok(u64::try_from(self.get::<i64>(name)?).unwrap_or(0))
    }

    /// Reads the next column as a duration in microseconds.
    pub(crate) fn duration(&self, name: &'static str) -> rusqlite::Result<Option<Duration>> {
        let micros: Option<i64> = self.get(name)?;
        Ok(micros.and_then(|micros| u64::try_from(micros).ok()).map(Duration::from_micros))
    }

    /// Reads the next column, a duration in microseconds, as whole seconds.
    pub(crate) fn seconds(&self, name: &'static str) -> rusqlite::Result<Option<u64>> {
        Ok(self.duration(name)?.map(|time| time.as_secs()))
    }

    fn advance(&self, name: &'static str) -> usize {
        let at = self.next.get();
        debug_assert_eq!(
            self.row.as_ref().column_name(at).ok(),
            Some(name),
            "the statement's columns in order"
        );
        self.next.set(at + 1);
        at
    }
}

/// Returns an amount as it is stored, capped at [`MOST`].
pub(super) fn amount(count: u64) -> i64 {
    i64::try_from(count.min(MOST)).unwrap_or(i64::MAX)
}

/// Returns a duration as it is stored, in microseconds.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Reads a JSON column.
pub(crate) fn json<T: DeserializeOwned>(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<T>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
    // From bytes like the replies, so that the code that reads a type is compiled once.
    serde_json::from_slice(text.as_bytes()).map(Some).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// Writes a value for a JSON column.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Storage {
        kind: StorageKind::Other,
        step: "write JSON",
        source: Arc::new(error),
    })
}

/// Writes an optional value for a JSON column.
pub(crate) fn to_json_or_null(value: Option<&Value>) -> Option<String> {
    value.map(Value::to_string)
}

/// Reads a column in which the empty text means none.
pub(crate) fn text_or_none<T: std::str::FromStr>(
    row: &Row<'_>,
    column: impl RowIndex,
) -> rusqlite::Result<Option<T>>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    match row.get_ref(column)?.as_str()? {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|error: T::Err| {
            rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
        }),
    }
}

/// Adds the failed step to an error of a statement.
pub(crate) trait Step<T> {
    /// Converts the error into an [`Error::Storage`] with this step.
    fn step(self, step: &'static str) -> Result<T, Error>;
}

impl<T> Step<T> for rusqlite::Result<T> {
    fn step(self, step: &'static str) -> Result<T, Error> {
        self.map_err(|error| storage(step, error))
    }
}

/// Returns the board's error for a failed statement.
pub(crate) fn storage(step: &'static str, error: rusqlite::Error) -> Error {
    Error::Storage { kind: kind(&error), step, source: Arc::new(error) }
}

/// Classifies an error of `SQLite`.
#[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum that grows")]
pub(crate) fn kind(error: &rusqlite::Error) -> StorageKind {
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..) => StorageKind::Corrupt,
        other => match other.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StorageKind::Full,
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => StorageKind::Io,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StorageKind::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StorageKind::Corrupt,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StorageKind::ReadOnly,
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig) => StorageKind::Constraint,
            _ => StorageKind::Other,
        },
    }
}
