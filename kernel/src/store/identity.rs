//! Id and name of a board, read on any connection.

use rusqlite::{Connection, params};

use super::statement::Statement as _;
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

pub(crate) fn board_name(conn: &Connection) -> Result<BoardName, Error> {
    conn.value("read the board's name", "SELECT name FROM meta WHERE only = 1", [])
}
