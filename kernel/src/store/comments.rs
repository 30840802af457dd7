//! Queries of comments.

use rusqlite::{Row, params};

use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::actor::ActorKind;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::filter::Excerpt;
use crate::model::id::{CommentId, RunId, TaskId};
use crate::model::limits::{self, ReplyCapacity};
use crate::model::note::Comment;

const COMMENT: &str = "SELECT id, task_id, author, author_kind, body, run_id, created_at FROM task_comments";

impl Tx<'_> {
    pub(crate) fn insert_comment(
        &self,
        task: &TaskId,
        author: &str,
        kind: ActorKind,
        body: &str,
        run: Option<RunId>,
        now: Timestamp,
    ) -> Result<CommentId, Error> {
        let number = self.conn.insert(
            "store the comment",
            "INSERT INTO task_comments (task_id, author, author_kind, body, run_id, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![task, author, kind, body, run, now],
        )?;
        Ok(CommentId(number))
    }

    pub(crate) fn comments_of(&self, task: &TaskId) -> Result<Vec<Comment>, Error> {
        self.conn.list("list comments", &format!("{COMMENT} WHERE task_id = ?1 ORDER BY id"), [task], whole)
    }

    pub(crate) fn count_comments(&self, task: &TaskId) -> Result<i64, Error> {
        self.conn.value("count the comments", "SELECT count(*) FROM task_comments WHERE task_id = ?1", [task])
    }

    /// Returns the latest comments of a task, or the latest before a given comment, oldest first. The newest have their
    /// texts, as far as there is space.
    pub(crate) fn some_comments(
        &self,
        task: &TaskId,
        before: Option<CommentId>,
        mut capacity: ReplyCapacity,
    ) -> Result<Excerpt<Comment>, Error> {
        let before = before.map_or(i64::MAX, |comment| comment.0);
        let comment_rows = self.conn.list(
            "list comments",
            "SELECT id, task_id, author, author_kind, octet_length(body) AS size, body, run_id, created_at \
             FROM task_comments WHERE task_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
            params![task, before, limits::REPLY_ROWS + 1],
            |row| {
                let size = usize::try_from(row.get::<_, i64>("size")?).unwrap_or(usize::MAX);
                // The text is read from the database only if there is space for it.
                let body = if capacity.take(size) { row.get("body")? } else { limits::left_out(size) };
                read(row, body)
            },
        )?;
        let mut part = Excerpt::from_rows(comment_rows, limits::REPLY_ROWS as usize);
        part.rows.reverse();
        Ok(part)
    }

    pub(super) fn unread_comments(&self) -> Result<Vec<String>, Error> {
        unread(self.conn, "task_comments", COMMENT, whole)
    }
}

fn whole(row: &Row<'_>) -> rusqlite::Result<Comment> {
    read(row, row.get("body")?)
}

fn read(row: &Row<'_>, body: String) -> rusqlite::Result<Comment> {
    Ok(Comment {
        id: row.get("id")?,
        task_id: row.get("task_id")?,
        author: row.get("author")?,
        author_kind: row.get("author_kind")?,
        body,
        created_at: row.get("created_at")?,
        run_id: row.get("run_id")?,
    })
}
