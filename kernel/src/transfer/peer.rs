//! Reads a database of Hermes Kanban without changing it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cells::{key, text, word};
use crate::model::error::Error;
use crate::model::id::AttachmentId;
use crate::store::files::with_end;
use crate::store::foreign::{Foreign, ForeignRow};
use crate::store::open;
use crate::store::open_error::OpenError;

/// Tables that are read. Older databases lack some, but never the first.
pub(super) const TABLES: [&str; 7] = [
    "tasks",
    "task_links",
    "task_comments",
    "task_events",
    "task_runs",
    "task_attachments",
    "kanban_notify_subs",
];

/// Row by its columns.
pub(super) type PeerRow = ForeignRow;

/// The other board, whose rows are read one by one.
#[derive(Debug)]
pub struct PeerBoard(pub(super) Foreign);

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    /// Number of imported rows of each of its tables.
    pub taken: BTreeMap<String, u64>,
    /// Descriptions of values that were changed.
    pub changed: Vec<String>,
    /// Descriptions of values that were left out.
    pub left: Vec<String>,
}

/// File that the other program stores for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFile {
    /// Id of the attachment on this board.
    pub id: AttachmentId,
    /// Name of the file, made valid for this board.
    pub filename: String,
    /// Media type of the file.
    pub content_type: Option<String>,
    /// Caller who added the file.
    pub author: Option<String>,
    /// Path of the file by the other program's database, which anyone may have written to.
    pub stored_path: PathBuf,
}

impl PeerBoard {
    /// Returns the files of its tasks.
    ///
    /// # Errors
    /// [`Error::Invalid`] if their table cannot be read.
    pub fn files(&self) -> Result<Vec<PeerFile>, Error> {
        let mut files = Vec::new();
        self.0.each(
            "task_attachments",
            |_| true,
            |row| {
                let given = word(row, "filename").unwrap_or_default();
                let name = given.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c });
                let name: String = name.collect();
                let name = name.get(..name.floor_char_boundary(255)).unwrap_or_default();
                let name = if matches!(name, "" | "." | "..") { "file" } else { name };
                files.extend(key(row, "id").map(|id| PeerFile {
                    id: AttachmentId(id),
                    filename: name.to_owned(),
                    content_type: word(row, "content_type"),
                    author: word(row, "uploaded_by"),
                    stored_path: text(row, "stored_path").unwrap_or_default().into(),
                }));
                Ok(())
            },
        )?;
        Ok(files)
    }

    /// Opens the database at `path`. The file and its log are copied to the private directory `scratch` and read there,
    /// because opening the file itself could create files beside it. The copy is needed as long as the board is read.
    ///
    /// # Errors
    /// A file that is missing, damaged or has no table of tasks.
    pub fn read(path: &Path, scratch: &Path) -> Result<Self, OpenError> {
        open::look(path)?;
        let copy = scratch.join("peer.db");
        for end in ["", "-wal"] {
            match fs::copy(with_end(path, end), with_end(&copy, end)) {
                Ok(_) => {}
                Err(error) if end == "-wal" && error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    return Err(OpenError::Io { step: "copy", path: with_end(path, end), source });
                }
            }
        }
        Foreign::open(&copy, path, &TABLES).map(PeerBoard)
    }
}
