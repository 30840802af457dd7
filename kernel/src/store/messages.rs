//! Queries of messages to the agents of runs.

use rusqlite::{Row, params};

use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{RunId, TaskId};
use crate::model::message::{Message, MessageNews};

const MESSAGE: &str = "SELECT run_id, number, task_id, author, body, comment_id, state, reason, created_at, \
                       changed_at FROM run_messages";

fn read(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        run_id: row.get("run_id")?,
        number: row.get("number")?,
        task_id: row.get("task_id")?,
        author: row.get("author")?,
        body: row.get("body")?,
        comment_id: row.get("comment_id")?,
        state: row.get("state")?,
        reason: row.get("reason")?,
        created_at: row.get("created_at")?,
        changed_at: row.get("changed_at")?,
    })
}

impl Tx<'_> {
    pub(super) fn unread_messages(&self) -> Result<Vec<String>, Error> {
        unread(self.conn, "run_messages", MESSAGE, read)
    }

    /// Marks a run as taking messages.
    pub(crate) fn open_inbox(&self, run: RunId) -> Result<(), Error> {
        self.conn.run(
            "open the inbox of the run",
            "UPDATE task_runs SET takes_messages = 1 WHERE id = ?1",
            [run],
        )
    }

    /// Returns true if a run takes messages.
    pub(crate) fn takes_messages(&self, run: RunId) -> Result<bool, Error> {
        let sql = "SELECT takes_messages FROM task_runs WHERE id = ?1";
        self.conn.value("read whether the run takes messages", sql, [run])
    }

    /// Returns the number of messages to a run.
    pub(crate) fn count_messages(&self, run: RunId) -> Result<u32, Error> {
        self.conn.value("count the messages", "SELECT count(*) FROM run_messages WHERE run_id = ?1", [run])
    }

    pub(crate) fn insert_message(&self, message: &Message) -> Result<(), Error> {
        self.conn.run(
            "store the message",
            "INSERT INTO run_messages (run_id, number, task_id, author, body, comment_id, state, reason, created_at, changed_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                message.run_id,
                message.number,
                message.task_id,
                message.author,
                message.body,
                message.comment_id,
                message.state,
                message.reason,
                message.created_at,
                message.changed_at,
            ],
        )
    }

    pub(crate) fn find_message(&self, run: RunId, number: u32) -> Result<Option<Message>, Error> {
        let sql = format!("{MESSAGE} WHERE run_id = ?1 AND number = ?2");
        self.conn.find("read the message", &sql, params![run, number], read)
    }

    /// Returns the messages to a run that its agent has not received, in the order in which they were sent.
    pub(crate) fn queued_messages(&self, run: RunId) -> Result<Vec<Message>, Error> {
        let sql = format!("{MESSAGE} WHERE run_id = ?1 AND state = 'queued' ORDER BY number");
        self.conn.list("list the queued messages", &sql, [run], read)
    }

    /// Returns the latest messages to the runs of a task, oldest first, each with the first part of its text.
    pub(crate) fn last_messages(&self, task: &TaskId, limit: u32) -> Result<Vec<Message>, Error> {
        let part = MESSAGE.replace(" body,", " substr(body, 1, 2000) AS body,");
        let sql = format!("{part} WHERE task_id = ?1 ORDER BY run_id DESC, number DESC LIMIT ?2");
        let mut message_rows: Vec<Message> =
            self.conn.list("list the messages", &sql, params![task, limit], read)?;
        message_rows.reverse();
        Ok(message_rows)
    }

    /// Stores the new state of a message.
    pub(crate) fn set_message(&self, run: RunId, news: &MessageNews, now: Timestamp) -> Result<bool, Error> {
        self.conn.alter(
            "keep what has become of the message",
            "UPDATE run_messages SET state = ?3, reason = ?4, changed_at = ?5 WHERE run_id = ?1 AND number = ?2",
            params![run, news.number, news.state, news.reason, now],
        )
    }
}
