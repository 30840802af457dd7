//! Stored replies: a repeated request gets the first one.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use super::convert::{Step as _, json};
use crate::clock::Timestamp;
use crate::error::Error;
use crate::id::RequestId;

pub(crate) struct Stored {
    pub(crate) caller: String,
    pub(crate) reply: Value,
}

pub(crate) fn find(conn: &Connection, id: &RequestId) -> Result<Option<Stored>, Error> {
    conn.prepare_cached("SELECT caller, reply FROM requests WHERE id = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([id.as_str()], |row| {
                    Ok(Stored {
                        caller: row.get("caller")?,
                        reply: json(row, "reply")?.unwrap_or(Value::Null),
                    })
                })
                .optional()
        })
        .step("look up the request")
}

pub(crate) fn insert(
    conn: &Connection,
    id: &RequestId,
    caller: &str,
    reply: &Value,
    now: Timestamp,
) -> Result<(), Error> {
    conn.prepare_cached("INSERT INTO requests (id, caller, reply, created_at) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut statement| statement.execute(params![id.as_str(), caller, reply.to_string(), now]))
        .step("store the reply")
        .map(|_| ())
}

pub(crate) fn forget_before(conn: &Connection, time: Timestamp) -> Result<usize, Error> {
    conn.execute("DELETE FROM requests WHERE created_at < ?1", [time]).step("forget old requests")
}
