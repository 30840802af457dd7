//! Queries of messages sent to chats, and of the directories of threads.

use rusqlite::params;

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{TaskId, Tenant};
use crate::model::letter::{Address, Letter};

impl Tx<'_> {
    /// Stores the id under which a service knows the latest message about a task at an address.
    pub(crate) fn put_chat_message(&self, letter: &Letter, message: &str) -> Result<(), Error> {
        let Address { channel, chat_id, thread_id } = &letter.address;
        let sql = "INSERT INTO chat_messages (task_id, channel, chat_id, thread_id, message_id, event_id) \
                   SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM tasks WHERE id = ?1) \
                   ON CONFLICT (task_id, channel, chat_id, thread_id) \
                   DO UPDATE SET message_id = excluded.message_id, event_id = excluded.event_id";
        let params = params![letter.task_id, channel, chat_id, thread_id, message, letter.event_id];
        self.conn.run("store the message of a chat", sql, params)
    }

    /// Returns at most `limit` tasks whose latest message in a chat has this id.
    pub(crate) fn tasks_of_message(
        &self,
        channel: &str,
        chat: &str,
        message: &str,
        tenant: Option<&Tenant>,
        limit: u32,
    ) -> Result<Vec<TaskId>, Error> {
        let sql = "SELECT DISTINCT m.task_id FROM chat_messages m JOIN tasks t ON t.id = m.task_id \
                   WHERE m.channel = ?1 AND m.chat_id = ?2 AND m.message_id = ?3 AND (?4 IS NULL OR t.tenant = ?4) \
                   ORDER BY m.task_id LIMIT ?5";
        let params = params![channel, chat, message, tenant.map(Tenant::as_str), limit];
        self.conn.list("look for the message of a chat", sql, params, |row| row.get(0))
    }

    /// Returns at most `limit` tasks with an open question, their own or their mission's, that was sent to an address.
    pub(crate) fn questions_at(
        &self,
        address: &Address,
        tenant: Option<&Tenant>,
        limit: u32,
    ) -> Result<Vec<TaskId>, Error> {
        let Address { channel, chat_id, thread_id } = address;
        let sql = "SELECT m.task_id FROM chat_messages m JOIN tasks t ON t.id = m.task_id \
                   WHERE m.channel = ?1 AND m.chat_id = ?2 AND m.thread_id = ?3 AND (?4 IS NULL OR t.tenant = ?4) \
                     AND ((t.status = 'blocked' AND t.block_kind IN ('needs_input', 'approval') \
                           AND NOT t.cancelled) \
                       OR EXISTS (SELECT 1 FROM holds h WHERE h.ended_at IS NULL AND h.kind = 'limit' \
                                  AND h.scope = 'mission' AND h.name = t.id)) \
                   ORDER BY m.event_id LIMIT ?5";
        let tenant = tenant.map(Tenant::as_str);
        let params = params![channel, chat_id, thread_id, tenant, limit];
        self.conn.list("look for the questions of a chat", sql, params, |row| row.get(0))
    }

    /// Returns the directory of a thread.
    pub(crate) fn chat_place(&self, address: &Address) -> Result<Option<String>, Error> {
        let Address { channel, chat_id, thread_id } = address;
        let sql = "SELECT path FROM chat_places WHERE channel = ?1 AND chat_id = ?2 AND thread_id = ?3";
        let params = params![channel, chat_id, thread_id];
        self.conn.find("read the directory of a thread", sql, params, |row| row.get(0))
    }

    /// Stores the directory of a thread.
    pub(crate) fn put_chat_place(
        &self,
        address: &Address,
        path: &str,
        by: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Address { channel, chat_id, thread_id } = address;
        let sql = "INSERT OR REPLACE INTO chat_places (channel, chat_id, thread_id, path, bound_by, bound_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let params = params![channel, chat_id, thread_id, path, by, now];
        self.conn.run("store the directory of a thread", sql, params)
    }

    /// Removes the directory of a thread. Returns true if there was one.
    pub(crate) fn delete_chat_place(&self, address: &Address) -> Result<bool, Error> {
        let Address { channel, chat_id, thread_id } = address;
        let sql = "DELETE FROM chat_places WHERE channel = ?1 AND chat_id = ?2 AND thread_id = ?3";
        let params = params![channel, chat_id, thread_id];
        self.conn.alter("remove the directory of a thread", sql, params)
    }

    /// Returns the number of threads of a channel that have a directory.
    pub(crate) fn count_chat_places(&self, channel: &str) -> Result<u32, Error> {
        let sql = "SELECT count(*) FROM chat_places WHERE channel = ?1";
        self.conn
            .find("count the directories of threads", sql, [channel], |row| row.get(0))
            .map(Option::unwrap_or_default)
    }
}
