//! Values of columns for exports and imports, which copy rows without interpreting them.

use crate::model::clock::Timestamp;
use crate::model::id::{AttachmentId, TaskId};
use crate::model::outcome::Outcome;

/// Value in a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// Declares the conversion of Rust types to column values.
macro_rules! cells {
    ($($type:ty: $value:ident => $cell:expr;)+) => {$(
        impl From<$type> for Cell {
            fn from($value: $type) -> Self {
                $cell
            }
        }
    )+};
}

cells! {
    i64: number => Cell::Integer(number);
    u32: number => Cell::Integer(number.into());
    bool: truth => Cell::Integer(truth.into());
    &str: text => Cell::Text(text.to_owned());
    String: text => Cell::Text(text);
    Timestamp: time => Cell::Integer(time.as_micros());
    &TaskId: id => id.as_str().into();
    AttachmentId: id => Cell::Integer(id.0);
    Outcome: outcome => outcome.as_str().into();
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}
