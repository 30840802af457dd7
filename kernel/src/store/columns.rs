//! One list of columns for each noun: the statement that selects them, the reading of a row, and the row that is put in.

use rusqlite::{Connection, ToSql, params_from_iter};

use super::statement::Statement as _;
use crate::model::error::Error;

/// Declares which columns a noun is read from: a constant with the list, and a function that reads a row which begins with it.
///
/// The fields stand behind the table that has them, each with the name of its column where that is another one. A column is
/// read as it is, or as `json`, as a `list` in JSON, as `optional` text whose empty form stands for none, as a `count`, as a
/// `duration` in microseconds, or as whole `seconds` of one. Groups of fields that a new row has as well follow: they are a
/// [`Group`] each. What stands after the last semicolon is given and not read.
macro_rules! columns {
    (
        $list:ident, $read:ident -> $noun:ident from $first:literal;
        $($table:literal: $($field:ident $(= $column:ident)? $(as $how:ident)?),+;)+
        $($group:ident: $type:ident { $($part:ident $(= $stored:ident)? $(as $form:ident)?),+ })*;
        $($given:ident: $value:expr),*
    ) => {
        /// The columns in the order in which they are read.
        pub(super) const $list: &str = concat!(
            $first, "id"
            $($(, ", ", $table, super::columns::name!($field $($column)?))+)+
            $($(, ", ", $first, super::columns::name!($part $($stored)?))+)*
        );

        fn $read(row: &rusqlite::Row<'_>) -> rusqlite::Result<$noun> {
            let row = super::convert::Columns::of(row);
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

/// The name of a field's column.
macro_rules! name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $column:ident) => {
        stringify!($column)
    };
}

/// A group of fields that a new row has as well as one that is read.
pub(super) trait Group {
    /// Returns its columns, each beside its value.
    fn cells(&self) -> Vec<(&'static str, Value<'_>)>;
}

/// A value of a group: as it is, or as it is stored.
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

/// Writes one column of a group.
macro_rules! value {
    ($field:expr) => {
        super::columns::Value::Field(&$field)
    };
    ($field:expr, duration) => {
        super::columns::Value::Micros($field.map(super::convert::micros))
    };
}

/// Reads one column.
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

/// Puts a row into a table: each column beside its value.
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
