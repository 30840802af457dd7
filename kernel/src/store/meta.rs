//! The board's identity: the one row of `meta`.

use rusqlite::{Connection, params};

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{BoardId, BoardName};

pub(crate) fn insert(
    conn: &Connection,
    id: BoardId,
    name: &BoardName,
    now: Timestamp,
) -> rusqlite::Result<()> {
    conn.execute(
        "INSERT INTO meta (only, board_id, name, created_at) VALUES (1, ?1, ?2, ?3)",
        params![id.to_string(), name, now],
    )?;
    Ok(())
}

pub(crate) fn board_id(conn: &Connection) -> Result<BoardId, Error> {
    conn.value("read the board's id", "SELECT board_id FROM meta WHERE only = 1", [])
}

impl Tx<'_> {
    pub(crate) fn board_id(&self) -> Result<BoardId, Error> {
        board_id(self.conn)
    }

    pub(crate) fn board_name(&self) -> Result<BoardName, Error> {
        board_name(self.conn)
    }

    pub(crate) fn next_uid(&self) -> Result<u32, Error> {
        self.conn.value("read the next uid", "SELECT next_uid FROM meta WHERE only = 1", [])
    }

    pub(crate) fn set_next_uid(&self, uid: u32) -> Result<(), Error> {
        self.conn.run("store the next uid", "UPDATE meta SET next_uid = ?1 WHERE only = 1", [uid])
    }
}

pub(crate) fn board_name(conn: &Connection) -> Result<BoardName, Error> {
    conn.value("read the board's name", "SELECT name FROM meta WHERE only = 1", [])
}
