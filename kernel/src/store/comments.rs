//! The comments of tasks.

use rusqlite::{Connection, Row, params};

use super::convert::Step as _;
use crate::actor::ActorKind;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::id::{CommentId, RunId, TaskId};
use crate::note::Comment;

pub(crate) fn insert(
    conn: &Connection,
    task: &TaskId,
    author: (&str, ActorKind),
    body: &str,
    run: Option<RunId>,
    now: Timestamp,
) -> Result<CommentId, Error> {
    conn.prepare_cached(
        "INSERT INTO task_comments (task_id, author, author_kind, body, run_id, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .and_then(|mut statement| statement.execute(params![task, author.0, author.1, body, run, now]))
    .step("store the comment")?;
    Ok(CommentId(conn.last_insert_rowid()))
}

const COMMENT: &str = "SELECT id, task_id, author, author_kind, body, run_id, created_at FROM task_comments";

fn read(row: &Row<'_>) -> rusqlite::Result<Comment> {
    Ok(Comment {
        id: row.get("id")?,
        task_id: row.get("task_id")?,
        author: row.get("author")?,
        author_kind: row.get("author_kind")?,
        body: row.get("body")?,
        created_at: row.get("created_at")?,
        run_id: row.get("run_id")?,
    })
}

pub(crate) fn list(conn: &Connection, task: &TaskId) -> Result<Vec<Comment>, Error> {
    conn.prepare_cached(&format!("{COMMENT} WHERE task_id = ?1 ORDER BY id"))
        .and_then(|mut statement| statement.query_map([task], read)?.collect())
        .step("list comments")
}

/// Reads every comment, for what cannot be read.
pub(crate) fn read_all(conn: &Connection) -> Result<(), Error> {
    conn.prepare(COMMENT)
        .and_then(|mut statement| statement.query_map([], read)?.try_for_each(|comment| comment.map(drop)))
        .step("read all comments")
}
