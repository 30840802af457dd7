//! Queries of attachments.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use super::columns::columns;
use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{AttachmentId, Digest, RunId, TaskId};
use crate::model::note::{Attachment, NewAttachment};

columns! {
    COLUMNS, read -> Attachment from "";
    "": task_id, filename, content_type, size as count, uploaded_by, sha256, created_at, run_id, artifact;
    ;
}

/// Author of an attachment, and the run and artifact that it comes from.
pub(crate) struct Origin<'a> {
    pub(crate) by: &'a str,
    pub(crate) run: Option<RunId>,
    pub(crate) artifact: Option<&'a str>,
}

impl Tx<'_> {
    pub(crate) fn insert_attachment(
        &self,
        task: &TaskId,
        file: &NewAttachment,
        origin: &Origin<'_>,
        now: Timestamp,
    ) -> Result<AttachmentId, Error> {
        let NewAttachment { filename, content_type, sha256, size, .. } = file;
        let size = i64::try_from(*size).unwrap_or(i64::MAX);
        let Origin { by, run, artifact } = origin;
        let number = self.conn.insert(
            "store the attachment",
            "INSERT INTO task_attachments \
               (task_id, filename, content_type, size, uploaded_by, sha256, created_at, run_id, artifact) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![task, filename, content_type, size, by, sha256, now, run, artifact],
        )?;
        Ok(AttachmentId(number))
    }

    pub(crate) fn attachments_of(&self, task: &TaskId) -> Result<Vec<Attachment>, Error> {
        self.conn.list(
            "list attachments",
            &format!("SELECT {COLUMNS} FROM task_attachments WHERE task_id = ?1 ORDER BY id"),
            [task],
            read,
        )
    }

    /// Returns all attachments of the board.
    pub(crate) fn all_attachments(&self) -> Result<Vec<Attachment>, Error> {
        all(self.conn)
    }

    pub(super) fn unread_attachments(&self) -> Result<Vec<String>, Error> {
        unread(self.conn, "task_attachments", &format!("SELECT {COLUMNS} FROM task_attachments"), read)
    }

    pub(crate) fn find_attachment(&self, id: AttachmentId) -> Result<Option<Attachment>, Error> {
        self.conn.find(
            "read the attachment",
            &format!("SELECT {COLUMNS} FROM task_attachments WHERE id = ?1"),
            [id],
            read,
        )
    }

    pub(crate) fn count_attachments(&self, task: &TaskId) -> Result<usize, Error> {
        self.conn
            .value("count attachments", "SELECT count(*) FROM task_attachments WHERE task_id = ?1", [task])
            .map(|count: i64| usize::try_from(count).unwrap_or(usize::MAX))
    }

    pub(crate) fn attached_digests(&self) -> Result<BTreeSet<Digest>, Error> {
        digests(self.conn)
    }

    pub(crate) fn is_attached(&self, digest: &Digest) -> Result<bool, Error> {
        holds(self.conn, digest)
    }

    pub(crate) fn delete_attachment(&self, id: AttachmentId) -> Result<(), Error> {
        self.conn.run("remove the attachment", "DELETE FROM task_attachments WHERE id = ?1", [id])
    }
}

/// Returns all attachments of the board.
pub(crate) fn all(conn: &Connection) -> Result<Vec<Attachment>, Error> {
    conn.list("list attachments", &format!("SELECT {COLUMNS} FROM task_attachments ORDER BY id"), [], read)
}

pub(crate) fn digests(conn: &Connection) -> Result<BTreeSet<Digest>, Error> {
    conn.list("list what is attached", "SELECT DISTINCT sha256 FROM task_attachments", [], |row| row.get(0))
}

pub(crate) fn holds(conn: &Connection, digest: &Digest) -> Result<bool, Error> {
    conn.value(
        "look for what is attached",
        "SELECT EXISTS (SELECT 1 FROM task_attachments WHERE sha256 = ?1)",
        [digest],
    )
}
