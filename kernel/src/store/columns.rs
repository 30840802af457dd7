//! Columns of records: a single declaration gives the SELECT list, the reader of a row, and the columns of the INSERT,
//! so that they cannot differ.

use rusqlite::{Connection, ToSql, params_from_iter};

use super::statement::Statement as _;
use crate::model::error::Error;

/// Declares the columns of a record: a constant with the SELECT list, and a function that reads a row of this list.
///
/// The fields follow the alias of their table, each with the name of its column if that differs. A column is read
/// without conversion, or as `json`, as a `list` in JSON, as `optional` text in which the empty text means none, as a
/// `count`, as a `duration` in microseconds, or as a duration in whole `seconds`. Groups of fields follow, which an
/// INSERT uses too: each implements [`Group`]. The fields after the last semicolon have fixed values and no columns.
macro_rules! columns {
    (
        $list:ident, $read:ident -> $noun:ident from $first:literal;
        $($table:literal: $($field:ident $(= $column:ident)? $(as $how:ident)?),+;)+
        $($group:ident: $type:ident { $($part:ident $(= $stored:ident)? $(as $form:ident)?),+ })*;
        $($given:ident: $value:expr),*
    ) => {
        /// Columns in the order in which they are read.
        pub(super) const $list: &str = concat!(
            $first, "id"
            $($(, ", ", $table, super::columns::name!($field $($column)?))+)+
            $($(, ", ", $first, super::columns::name!($part $($stored)?))+)*
        );

        fn $read(row: &rusqlite::Row<'_>) -> rusqlite::Result<$noun> {
            let row = super::convert::Columns::new(row);
            Ok($noun {
                id: row.get("id")?,
                $($($field: super::columns::column!(row, super::columns::name!($field $($column)?) $(, $how)?),)+)+
                $($group: $type {
                    $($part: super::columns::column!(row, super::columns::name!($part $($stored)?) $(, $form)?),)+
                },)*
                $($given: $value,)*
            })
        }

        $(impl super::columns::Group for $type {
            fn cells(&self) -> Vec<(&'static str, super::columns::Value<'_>)> {
                vec![$((super::columns::name!($part $($stored)?), super::columns::value!(self.$part $(, $form)?)),)+]
            }
        })*
    };
}

/// Returns the column name of a field.
macro_rules! name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $column:ident) => {
        stringify!($column)
    };
}

/// Group of fields that is both read and inserted.
pub(super) trait Group {
    /// Returns the columns of the group with their values.
    fn cells(&self) -> Vec<(&'static str, Value<'_>)>;
}

/// Value of a group's column: the field itself, or a duration in microseconds.
pub(super) enum Value<'a> {
    Field(&'a dyn ToSql),
    Micros(Option<i64>),
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        match self {
            Value::Field(field) => field.to_sql(),
            Value::Micros(time) => time.to_sql(),
        }
    }
}

/// Returns the value of a group's column for an INSERT.
macro_rules! value {
    ($field:expr) => {
        super::columns::Value::Field(&$field)
    };
    ($field:expr, duration) => {
        super::columns::Value::Micros($field.map(super::convert::micros))
    };
}

/// Reads a column.
macro_rules! column {
    ($row:ident, $name:expr) => {
        $row.get($name)?
    };
    ($row:ident, $name:expr, list) => {
        $row.json($name)?.unwrap_or_default()
    };
    ($row:ident, $name:expr, $how:ident) => {
        $row.$how($name)?
    };
}

pub(super) use {column, columns, name, value};

/// Inserts a row, given as pairs of column and value, and returns its row id.
pub(super) fn insert(
    conn: &Connection,
    table: &str,
    row: &[(&str, &dyn ToSql)],
    step: &'static str,
) -> Result<i64, Error> {
    let names: Vec<&str> = row.iter().map(|(name, _)| *name).collect();
    let marks = vec!["?"; names.len()].join(", ");
    let sql = format!("INSERT INTO {table} ({}) VALUES ({marks})", names.join(", "));
    conn.insert(step, &sql, params_from_iter(row.iter().map(|(_, value)| value)))
}
