//! The files that belong to tasks.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::convert::{Columns, Step as _};
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{AttachmentId, Digest, RunId, TaskId};
use crate::model::note::Attachment;

const COLUMNS: &str =
    "id, task_id, filename, content_type, size, uploaded_by, sha256, created_at, run_id, artifact";

/// Where an attachment comes from.
pub(crate) struct Origin<'a> {
    pub(crate) by: &'a str,
    pub(crate) run: Option<RunId>,
    pub(crate) artifact: Option<&'a str>,
}

impl Tx<'_> {
    pub(crate) fn insert_attachment(
        &self,
        task: &TaskId,
        file: &crate::model::note::NewAttachment,
        origin: &Origin<'_>,
        now: Timestamp,
    ) -> Result<AttachmentId, Error> {
        let size = i64::try_from(file.size).unwrap_or(i64::MAX);
        self.conn
            .prepare_cached(
                "INSERT INTO task_attachments \
           (task_id, filename, content_type, size, uploaded_by, sha256, created_at, run_id, artifact) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    task,
                    file.filename,
                    file.content_type,
                    size,
                    origin.by,
                    file.sha256,
                    now,
                    origin.run,
                    origin.artifact
                ])
            })
            .step("store the attachment")?;
        Ok(AttachmentId(self.conn.last_insert_rowid()))
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Attachment> {
    let columns = Columns::of(row);
    Ok(Attachment {
        id: columns.get("id")?,
        task_id: columns.get("task_id")?,
        filename: columns.get("filename")?,
        content_type: columns.get("content_type")?,
        size: u64::try_from(columns.get::<i64>("size")?).unwrap_or(0),
        uploaded_by: columns.get("uploaded_by")?,
        sha256: columns.get("sha256")?,
        created_at: columns.get("created_at")?,
        run_id: columns.get("run_id")?,
        artifact: columns.get("artifact")?,
    })
}

impl Tx<'_> {
    pub(crate) fn attachments_of(&self, task: &TaskId) -> Result<Vec<Attachment>, Error> {
        self.conn
            .prepare_cached(&format!("SELECT {COLUMNS} FROM task_attachments WHERE task_id = ?1 ORDER BY id"))
            .and_then(|mut statement| statement.query_map([task], read)?.collect())
            .step("list attachments")
    }
}

/// Every attachment of the board.
pub(crate) fn all(conn: &Connection) -> Result<Vec<Attachment>, Error> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM task_attachments ORDER BY id"))
        .and_then(|mut statement| statement.query_map([], read)?.collect())
        .step("list attachments")
}

impl Tx<'_> {
    /// Every attachment of the board.
    pub(crate) fn all_attachments(&self) -> Result<Vec<Attachment>, Error> {
        all(self.conn)
    }

    pub(crate) fn find_attachment(&self, id: AttachmentId) -> Result<Option<Attachment>, Error> {
        self.conn
            .prepare_cached(&format!("SELECT {COLUMNS} FROM task_attachments WHERE id = ?1"))
            .and_then(|mut statement| statement.query_row([id], read).optional())
            .step("read the attachment")
    }

    pub(crate) fn count_attachments(&self, task: &TaskId) -> Result<usize, Error> {
        self.conn
            .prepare_cached("SELECT count(*) FROM task_attachments WHERE task_id = ?1")
            .and_then(|mut statement| statement.query_row([task], |row| row.get::<_, i64>(0)))
            .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
            .step("count attachments")
    }
}

pub(crate) fn digests(conn: &Connection) -> Result<BTreeSet<Digest>, Error> {
    conn.prepare_cached("SELECT DISTINCT sha256 FROM task_attachments")
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
        .step("list what is attached")
}

impl Tx<'_> {
    pub(crate) fn attached_digests(&self) -> Result<BTreeSet<Digest>, Error> {
        digests(self.conn)
    }
}

pub(crate) fn holds(conn: &Connection, digest: &Digest) -> Result<bool, Error> {
    conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM task_attachments WHERE sha256 = ?1)")
        .and_then(|mut statement| statement.query_row([digest], |row| row.get(0)))
        .step("look for what is attached")
}

impl Tx<'_> {
    pub(crate) fn is_attached(&self, digest: &Digest) -> Result<bool, Error> {
        holds(self.conn, digest)
    }

    pub(crate) fn delete_attachment(&self, id: AttachmentId) -> Result<(), Error> {
        self.conn
            .execute("DELETE FROM task_attachments WHERE id = ?1", [id])
            .step("remove the attachment")
            .map(|_| ())
    }
}
