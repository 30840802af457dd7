//! Stored replies, which a repeated request gets again.
//!
//! See decision 0020.

use rusqlite::{Connection, params};

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::request::{Caller, Request};

/// Number of latest replies that are kept for a run. A client repeats a request before it sends this many others.
const OF_A_RUN: u32 = 1000;

impl Tx<'_> {
    /// Returns the reply to a request, as JSON, if the request was answered before.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the caller has used the id for another request of the same verb.
    pub(crate) fn stored_reply(&self, request: &Request) -> Result<Option<String>, Error> {
        let Request { caller, verb, id, body } = request;
        let found: Option<(String, String)> = self.conn.find(
            "look up the request",
            "SELECT body, reply FROM requests WHERE caller = ?1 AND verb = ?2 AND id = ?3",
            params![caller.as_str(), verb, id.as_str()],
            |row| Ok((row.get("body")?, row.get("reply")?)),
        )?;
        match found {
            Some((stored, reply)) if stored == body.as_str() => Ok(Some(reply)),
            Some(_) => Err(Error::invalid(
                "request id",
                format!("{id} was already used for another `{verb}`"),
                "use a new id for each request; repeat a request with the same body",
            )),
            None => Ok(None),
        }
    }

    pub(crate) fn store_reply(&self, request: &Request, reply: &str, now: Timestamp) -> Result<(), Error> {
        let Request { caller, verb, id, body } = request;
        self.conn.run("store the reply", "INSERT INTO requests (id, caller, verb, body, reply, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)", params![id.as_str(), caller.as_str(), verb, body, reply, now])?;
        if caller.is_run() { forget_but_the_latest(self.conn, caller) } else { Ok(()) }
    }

    pub(crate) fn forget_replies_before(&self, time: Timestamp) -> Result<usize, Error> {
        self.conn.count("forget old requests", "DELETE FROM requests WHERE created_at < ?1", [time])
    }

    /// Returns the rows of at most `limit` requests from before a time, and the bytes of their replies.
    pub(crate) fn replies_before(&self, time: Timestamp, limit: u32) -> Result<(Vec<i64>, u64), Error> {
        let rows: Vec<(i64, i64)> = self.conn.list(
            "list old requests",
            "SELECT rowid, octet_length(reply) AS bytes FROM requests WHERE created_at < ?1 LIMIT ?2",
            params![time, limit],
            |row| Ok((row.get("rowid")?, row.get("bytes")?)),
        )?;
        let bytes = rows.iter().map(|(_, bytes)| bytes.unsigned_abs()).sum();
        Ok((rows.into_iter().map(|(row, _)| row).collect(), bytes))
    }

    pub(crate) fn forget_reply(&self, row: i64) -> Result<(), Error> {
        self.conn.run("forget a request", "DELETE FROM requests WHERE rowid = ?1", [row])
    }
}

fn forget_but_the_latest(conn: &Connection, caller: &Caller) -> Result<(), Error> {
    conn.run(
        "forget old replies of the run",
        "DELETE FROM requests WHERE rowid IN \
           (SELECT rowid FROM requests WHERE caller = ?1 ORDER BY rowid DESC LIMIT -1 OFFSET ?2)",
        params![caller.as_str(), OF_A_RUN],
    )
}
