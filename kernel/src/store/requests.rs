//! Stored replies: a repeated request gets the first one.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::convert::Step as _;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::id::RequestId;

pub(crate) struct Stored {
    pub(crate) caller: String,
    /// As JSON.
    pub(crate) reply: String,
}

pub(crate) fn find(conn: &Connection, id: &RequestId) -> Result<Option<Stored>, Error> {
    conn.prepare_cached("SELECT caller, reply FROM requests WHERE id = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([id.as_str()], |row| {
                    Ok(Stored { caller: row.get("caller")?, reply: row.get("reply")? })
                })
                .optional()
        })
        .step("look up the request")
}

pub(crate) fn insert(
    conn: &Connection,
    id: &RequestId,
    caller: &str,
    reply: &str,
    now: Timestamp,
) -> Result<(), Error> {
    conn.prepare_cached("INSERT INTO requests (id, caller, reply, created_at) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut statement| statement.execute(params![id.as_str(), caller, reply, now]))
        .step("store the reply")
        .map(|_| ())
}

pub(crate) fn forget_before(conn: &Connection, time: Timestamp) -> Result<usize, Error> {
    conn.execute("DELETE FROM requests WHERE created_at < ?1", [time]).step("forget old requests")
}

/// Returns at most `limit` requests of before a time, and the bytes of their replies.
pub(crate) fn before(conn: &Connection, time: Timestamp, limit: u32) -> Result<(Vec<String>, u64), Error> {
    let rows: Vec<(String, i64)> = conn
        .prepare_cached("SELECT id, length(reply) AS bytes FROM requests WHERE created_at < ?1 LIMIT ?2")
        .and_then(|mut statement| {
            statement
                .query_map(params![time, limit], |row| Ok((row.get("id")?, row.get("bytes")?)))?
                .collect()
        })
        .step("list old requests")?;
    let bytes = rows.iter().map(|(_, bytes)| bytes.unsigned_abs()).sum();
    Ok((rows.into_iter().map(|(id, _)| id).collect(), bytes))
}

pub(crate) fn forget(conn: &Connection, id: &str) -> Result<(), Error> {
    conn.prepare_cached("DELETE FROM requests WHERE id = ?1")
        .and_then(|mut statement| statement.execute([id]))
        .step("forget a request")
        .map(|_| ())
}
