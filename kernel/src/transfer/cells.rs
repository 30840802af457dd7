//! Conversions of another program's cells to texts and numbers.

use crate::model::cell::Cell;
use crate::store::foreign::ForeignRow;
use crate::store::values;

pub(super) fn text(row: &ForeignRow, column: &str) -> Option<String> {
    match row.get(column)? {
        Cell::Text(text) => Some(text.replace('\0', "\u{fffd}")),
        Cell::Integer(number) => Some(number.to_string()),
        Cell::Real(number) => Some(number.to_string()),
        Cell::Null | Cell::Blob(_) => None,
    }
}

/// Returns a text that is not empty.
pub(super) fn word(row: &ForeignRow, column: &str) -> Option<String> {
    text(row, column).filter(|text| !text.is_empty())
}

pub(super) fn number(row: &ForeignRow, column: &str) -> Option<i64> {
    match row.get(column)? {
        Cell::Integer(number) => Some(*number),
        Cell::Text(text) => text.trim().parse().ok(),
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds are meant")]
        Cell::Real(number) => Some(*number as i64),
        Cell::Null | Cell::Blob(_) => None,
    }
}

/// Returns the key of a row; none for a number that no row of a board has as its key.
pub(super) fn key(row: &ForeignRow, column: &str) -> Option<i64> {
    match row.get(column)? {
        Cell::Real(_) => None,
        Cell::Integer(_) | Cell::Text(_) | Cell::Null | Cell::Blob(_) => {
            number(row, column).and_then(values::key)
        }
    }
}
