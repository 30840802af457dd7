//! Forms of SQL statements. Each statement is prepared once per connection, and its failure names the step.

use rusqlite::types::FromSql;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Params, Row};

use super::convert::Step as _;
use crate::model::error::Error;

/// Statements by the form of their result.
pub(super) trait Statement {
    /// Runs an act on a prepared statement.
    fn with<T>(
        &self,
        step: &'static str,
        sql: &str,
        act: impl FnOnce(&mut CachedStatement<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error>;

    /// Changes rows. Returns their number.
    fn count(&self, step: &'static str, sql: &str, params: impl Params) -> Result<usize, Error> {
        self.with(step, sql, |statement| statement.execute(params))
    }

    /// Changes any number of rows.
    fn run(&self, step: &'static str, sql: &str, params: impl Params) -> Result<(), Error> {
        self.count(step, sql, params).map(drop)
    }

    /// Changes a row. Returns true if it exists.
    fn alter(&self, step: &'static str, sql: &str, params: impl Params) -> Result<bool, Error> {
        self.count(step, sql, params).map(|rows| rows == 1)
    }

    /// Inserts a row. Returns its number.
    fn insert(&self, step: &'static str, sql: &str, params: impl Params) -> Result<i64, Error> {
        self.with(step, sql, |statement| statement.insert(params))
    }

    /// Reads all rows.
    fn list<T, C: FromIterator<T>>(
        &self,
        step: &'static str,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C, Error> {
        self.with(step, sql, |statement| statement.query_map(params, read)?.collect())
    }

    /// Calls `each` for each row; its failure is returned as it is.
    fn scan<T>(
        &self,
        step: &'static str,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        mut each: impl FnMut(T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.with(step, sql, |statement| {
            let mut rows = statement.query(params)?;
            while let Some(row) = rows.next()? {
                if let Err(error) = each(read(row)?) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        })?
    }

    /// Reads the first row, if there is one.
    fn find<T>(
        &self,
        step: &'static str,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        self.with(step, sql, |statement| statement.query_row(params, read).optional())
    }

    /// Reads the first row. Its absence is an error.
    fn fetch<T>(
        &self,
        step: &'static str,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.with(step, sql, |statement| statement.query_row(params, read))
    }

    /// Reads the only column of the only row.
    fn value<T: FromSql>(&self, step: &'static str, sql: &str, params: impl Params) -> Result<T, Error> {
        self.fetch(step, sql, params, |row| row.get(0))
    }
}

impl Statement for Connection {
    fn with<T>(
        &self,
        step: &'static str,
        sql: &str,
        act: impl FnOnce(&mut CachedStatement<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.prepare_cached(sql).and_then(|mut statement| act(&mut statement)).step(step)
    }
}
