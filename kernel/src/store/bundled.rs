//! Tables that only a copy of a board has: the bytes of attached files, and details about the board for human readers.
//!
//! They are created in a copy before it has its final name, and removed before a restored board is put in place.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _};

use super::attachments;
use super::open;
use super::open_error::{OpenError, sqlite, unreadable};
use crate::model::id::Digest;
use crate::model::note::Attachment;

pub(super) const TABLES: &str = "
    CREATE TABLE bundled_files (sha256 TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE bundled_details (only INTEGER PRIMARY KEY CHECK (only = 1), details TEXT NOT NULL) STRICT;";
const NO_TABLES: &str = "DROP TABLE IF EXISTS bundled_files; DROP TABLE IF EXISTS bundled_details;";

/// Returns true if a table belongs to a copy and not to a board.
pub(super) fn is_of_copy(table: &str) -> bool {
    matches!(table, "bundled_files" | "bundled_details")
}

/// Copy of a board under a draft name, which no other process uses.
pub(crate) struct Copy {
    conn: Connection,
    path: PathBuf,
}

impl Copy {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { conn: open::foreign_writer(path)?, path: path.to_owned() })
    }

    /// Creates the tables, in a transaction that [`Self::close`] commits, and stores the details about the board.
    pub(crate) fn begin(&self, details: &str) -> Result<(), OpenError> {
        // The loss of a draft does no harm, and the finished file is synced as a whole.
        self.conn
            .pragma_update(None, "synchronous", "OFF")
            .and_then(|()| self.conn.execute_batch("BEGIN IMMEDIATE"))
            .and_then(|()| self.conn.execute_batch(NO_TABLES))
            .and_then(|()| self.conn.execute_batch(TABLES))
            .and_then(|()| {
                self.conn.execute("INSERT INTO bundled_details (only, details) VALUES (1, ?1)", [details])
            })
            .map(drop)
            .map_err(|error| self.failed(error))
    }

    /// Stores the bytes of a file.
    pub(crate) fn put(&self, digest: &Digest, bytes: &[u8]) -> Result<(), OpenError> {
        self.conn
            .execute("INSERT INTO bundled_files (sha256, bytes) VALUES (?1, ?2)", (digest, bytes))
            .map(drop)
            .map_err(|error| self.failed(error))
    }

    /// Returns true if the copy has more than a board.
    pub(crate) fn is_bundled(&self) -> Result<bool, OpenError> {
        self.conn
            .query_row(
                "SELECT count(*) = 2 FROM sqlite_schema WHERE name LIKE 'bundled\\_%' ESCAPE '\\' AND type = 'table'",
                [],
                |row| row.get(0),
            )
            .map_err(|error| self.failed(error))
    }

    /// Returns the details about the board.
    pub(crate) fn details(&self) -> Result<Option<String>, OpenError> {
        self.conn
            .query_row("SELECT details FROM bundled_details", [], |row| row.get(0))
            .optional()
            .map_err(|error| self.failed(error))
    }

    /// Returns the bytes of a file.
    pub(crate) fn bytes(&self, digest: &Digest) -> Result<Option<Vec<u8>>, OpenError> {
        self.conn
            .query_row("SELECT bytes FROM bundled_files WHERE sha256 = ?1", [digest], |row| row.get(0))
            .optional()
            .map_err(|error| self.failed(error))
    }

    /// Returns the digests of the board's attachments.
    pub(crate) fn digests(&self) -> Result<std::collections::BTreeSet<Digest>, OpenError> {
        attachments::digests(&self.conn).map_err(|error| unreadable(&self.path, &error))
    }

    /// Returns the attachments of the board.
    pub(crate) fn attachments(&self) -> Result<Vec<Attachment>, OpenError> {
        attachments::all(&self.conn).map_err(|error| unreadable(&self.path, &error))
    }

    /// Removes the tables, and returns the space of the files.
    pub(crate) fn strip(&self) -> Result<(), OpenError> {
        self.conn
            .execute_batch(NO_TABLES)
            .and_then(|()| self.conn.execute_batch("VACUUM"))
            .map_err(|error| self.failed(error))
    }

    /// Commits the tables and closes the copy.
    pub(crate) fn close(self) -> Result<(), OpenError> {
        let Self { conn, path } = self;
        let fail = |error| sqlite("put the files into", &path, error);
        if !conn.is_autocommit() {
            conn.execute_batch("COMMIT").map_err(fail)?;
        }
        conn.close().map_err(|(_, error)| fail(error))
    }

    fn failed(&self, error: rusqlite::Error) -> OpenError {
        sqlite("handle the files of", &self.path, error)
    }
}
