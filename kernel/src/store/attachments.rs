//! The files that belong to tasks.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::convert::Step as _;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::id::TaskId;
use crate::note::Attachment;

pub(crate) fn insert(
    conn: &Connection,
    task: &TaskId,
    file: &crate::board::NewAttachment,
    by: &str,
    now: Timestamp,
) -> Result<i64, Error> {
    let size = i64::try_from(file.size).unwrap_or(i64::MAX);
    conn.prepare_cached(
        "INSERT INTO task_attachments (task_id, filename, stored_path, content_type, size, uploaded_by, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .and_then(|mut statement| {
        statement.execute(params![task, file.filename, file.stored_path, file.content_type, size, by, now])
    })
    .step("store the attachment")?;
    Ok(conn.last_insert_rowid())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Attachment> {
    Ok(Attachment {
        id: row.get("id")?,
        task_id: row.get("task_id")?,
        filename: row.get("filename")?,
        content_type: row.get("content_type")?,
        size: u64::try_from(row.get::<_, i64>("size")?).unwrap_or(0),
        uploaded_by: row.get("uploaded_by")?,
        stored_path: row.get("stored_path")?,
        created_at: row.get("created_at")?,
    })
}

pub(crate) fn list(conn: &Connection, task: &TaskId) -> Result<Vec<Attachment>, Error> {
    conn.prepare_cached("SELECT * FROM task_attachments WHERE task_id = ?1 ORDER BY id")
        .and_then(|mut statement| statement.query_map([task], read)?.collect())
        .step("list attachments")
}

pub(crate) fn find(conn: &Connection, id: i64) -> Result<Option<Attachment>, Error> {
    conn.prepare_cached("SELECT * FROM task_attachments WHERE id = ?1")
        .and_then(|mut statement| statement.query_row([id], read).optional())
        .step("read the attachment")
}

pub(crate) fn delete(conn: &Connection, id: i64) -> Result<(), Error> {
    conn.execute("DELETE FROM task_attachments WHERE id = ?1", [id]).step("remove the attachment").map(|_| ())
}
