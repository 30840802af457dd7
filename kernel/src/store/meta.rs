//! Queries of `meta`, a single row with the board's identity and the next user id.

use super::identity;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::error::Error;
use crate::model::id::{BoardId, BoardName};

impl Tx<'_> {
    pub(crate) fn board_id(&self) -> Result<BoardId, Error> {
        identity::board_id(self.conn)
    }

    pub(crate) fn board_name(&self) -> Result<BoardName, Error> {
        identity::board_name(self.conn)
    }

    pub(crate) fn next_uid(&self) -> Result<u32, Error> {
        self.conn.value("read the next uid", "SELECT next_uid FROM meta WHERE only = 1", [])
    }

    pub(crate) fn set_next_uid(&self, uid: u32) -> Result<(), Error> {
        self.conn.run("store the next uid", "UPDATE meta SET next_uid = ?1 WHERE only = 1", [uid])
    }
}
