//! Rows of any table for exports and imports: columns by name, values as they are stored.

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};

use super::convert::Step as _;
use super::statement::Statement as _;
use super::tx::Tx;
use super::{bundled, counts};
use crate::model::cell::Cell;
use crate::model::error::Error;

/// Table with the last ids that were used, so that no id is used twice.
const SEQUENCES: &str = "sqlite_sequence";

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Null => ToSqlOutput::Owned(Value::Null),
            Cell::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Cell::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Blob(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl From<ValueRef<'_>> for Cell {
    /// Converts a value. Text that is not UTF-8 is replaced where needed, because another program may have written it.
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
        }
    }
}

/// Returns the tables with a board's rows, without the tables that triggers derive.
pub(super) fn tables(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
           ORDER BY rowid",
    )?;
    let rows = statement.query_map([], |row| row.get(0))?;
    let tables = rows.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(tables.into_iter().filter(|table| !counts::DERIVED.contains(&table.as_str())).collect())
}

/// Returns true if a table stores its rows: it is neither a view nor virtual.
pub(super) fn is_plain(conn: &Connection, table: &str) -> rusqlite::Result<bool> {
    conn.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND sql LIKE 'CREATE TABLE %')",
        [table],
        |row| row.get(0),
    )
}

pub(super) fn columns(conn: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    let rows = statement.query_map([table], |row| row.get(0))?;
    rows.collect()
}

/// Returns the order of an export's rows: the key columns come first.
pub(super) fn key(columns: &[String]) -> &'static str {
    if columns.len() > 1 { "1, 2" } else { "1" }
}

impl Tx<'_> {
    /// Returns the tables of an export with their columns: all tables but the identity of the file.
    pub(crate) fn tables(&self) -> Result<Vec<(String, Vec<String>)>, Error> {
        let mut names = tables(self.conn).step("read the schema")?;
        names.retain(|name| name != "meta" && !bundled::is_of_copy(name));
        names.push(SEQUENCES.to_owned());
        let with_columns = |table: String| {
            let columns = columns(self.conn, &table).step("read the schema")?;
            Ok((table, columns))
        };
        names.into_iter().map(with_columns).collect()
    }

    /// Calls `each` for each row of a table, in the order of its key.
    pub(crate) fn each_row(
        &self,
        table: &str,
        columns: &[String],
        each: impl FnMut(Vec<Cell>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let list = columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let key = key(columns);
        let read = |row: &Row<'_>| (0..columns.len()).map(|at| row.get_ref(at).map(Cell::from)).collect();
        let sql = format!("SELECT {list} FROM \"{table}\" ORDER BY {key}");
        self.conn.scan("export a table", &sql, [], read, each)
    }

    /// Inserts a row into a table.
    pub(crate) fn insert_row(&self, table: &str, columns: &[&str], cells: &[Cell]) -> Result<(), Error> {
        if table == SEQUENCES {
            // The inserted rows have created an entry already.
            self.conn.run(
                "import a row",
                "DELETE FROM sqlite_sequence WHERE name = ?1",
                params_from_iter(cells.first()),
            )?;
        }
        self.put_row("INSERT", table, columns, cells).map(|_| ())
    }

    /// Inserts a row unless its key exists. Returns true if it was inserted.
    pub(crate) fn insert_new_row(
        &self,
        table: &str,
        columns: &[&str],
        cells: &[Cell],
    ) -> Result<bool, Error> {
        self.put_row("INSERT OR IGNORE", table, columns, cells).map(|rows| rows == 1)
    }

    fn put_row(&self, insert: &str, table: &str, columns: &[&str], cells: &[Cell]) -> Result<usize, Error> {
        let names = columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let marks = vec!["?"; columns.len()].join(", ");
        self.conn.count(
            "import a row",
            &format!("{insert} INTO \"{table}\" ({names}) VALUES ({marks})"),
            params_from_iter(cells),
        )
    }

    /// Defers the check of references to the commit of the transaction.
    pub(crate) fn defer_references(&self) -> Result<(), Error> {
        self.conn.pragma_update(None, "defer_foreign_keys", true).step("begin the import")
    }

    /// Returns true if nothing was ever done on the board.
    pub(crate) fn is_empty(&self) -> Result<bool, Error> {
        self.conn.value(
            "look at the board",
            "SELECT NOT (EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM task_events))",
            [],
        )
    }

    /// Returns the number of rows that refer to missing rows.
    pub(crate) fn count_orphans(&self) -> Result<i64, Error> {
        self.conn.value("check the references", "SELECT count(*) FROM pragma_foreign_key_check", [])
    }

    /// Removes the data of a host: user ids of workers, and tokens of runs. Waiting messages become dead, because the
    /// former host may have sent them. Breakers are over: they are of the former host, and each holds all boards of this
    /// one. A plugin is not ahead of the events. Schedules have no next tick until a file of this host defines them with
    /// the same text, and their waiting ticks are missed.
    pub(crate) fn forget_host(&self) -> Result<(), Error> {
        self.conn
            .execute_batch(
                "UPDATE tasks SET worker_uid = NULL WHERE worker_uid IS NOT NULL; \
                 UPDATE task_runs SET token_hash = NULL WHERE token_hash IS NOT NULL; \
                 UPDATE notify_outbox SET state = 'dead', digest = NULL, last_error = 'its board was imported, and the former one may \
                   have sent it' WHERE state = 'waiting'; \
                 UPDATE holds SET ended_at = created_at, ended_by = 'system:supervisor' \
                   WHERE kind = 'breaker' AND ended_at IS NULL; \
                 UPDATE plugin_cursors SET event_id = min(event_id, (SELECT ifnull(max(id), 0) FROM task_events)); \
                 UPDATE schedules SET next = NULL; \
                 UPDATE schedule_ticks SET outcome = 'missed', note = 'its board was imported' WHERE outcome IN ('due', 'queued');",
            )
            .step("forget the former host")
    }
}
