//! A value in a column, as exports and imports see it.

use crate::model::clock::Timestamp;
use crate::model::id::{AttachmentId, TaskId};
use crate::model::outcome::Outcome;

/// A value in a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Cell::Integer(number)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Cell::Integer(number.into())
    }
}

impl From<bool> for Cell {
    fn from(truth: bool) -> Self {
        Cell::Integer(truth.into())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<Timestamp> for Cell {
    fn from(time: Timestamp) -> Self {
        Cell::Integer(time.as_micros())
    }
}

impl From<&TaskId> for Cell {
    fn from(id: &TaskId) -> Self {
        id.as_str().into()
    }
}

impl From<AttachmentId> for Cell {
    fn from(id: AttachmentId) -> Self {
        Cell::Integer(id.0)
    }
}

impl From<Outcome> for Cell {
    fn from(outcome: Outcome) -> Self {
        outcome.as_str().into()
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}
