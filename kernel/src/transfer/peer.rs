//! The database of `hermes kanban`, read and never changed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cells::{number, text, word};
use crate::model::id::AttachmentId;
use crate::store::files::with_end;
use crate::store::foreign::{self, Foreign, ForeignRow};
use crate::store::open;
use crate::store::open_error::OpenError;

/// The tables that are read; older databases lack some, but never the first.
const TABLES: [&str; 7] = [
    "tasks",
    "task_links",
    "task_comments",
    "task_events",
    "task_runs",
    "task_attachments",
    "kanban_notify_subs",
];

/// A row by its columns.
pub(super) type PeerRow = ForeignRow;

/// Everything that the other board has.
#[derive(Clone, Debug)]
pub struct PeerBoard {
    pub(super) rows: BTreeMap<String, Vec<PeerRow>>,
    /// Tables that are there and mean nothing here.
    pub(super) unknown: Vec<String>,
}

/// What was taken over, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    /// How many rows of each of its tables are on this board now.
    pub taken: BTreeMap<String, u64>,
    /// What means something else here than it did there, in words.
    pub changed: Vec<String>,
    /// What was not taken, in words.
    pub left: Vec<String>,
}

/// A file that the other program keeps for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFile {
    /// The id that the attachment has on this board.
    pub id: AttachmentId,
    /// Its name, as it can be here.
    pub filename: String,
    /// Its media type.
    pub content_type: Option<String>,
    /// Who added it.
    pub author: Option<String>,
    /// Where the other program says it is: a path from a database that anybody may have written to.
    pub stored_path: PathBuf,
}

impl PeerBoard {
    /// Returns the files of its tasks.
    pub fn files(&self) -> Vec<PeerFile> {
        let rows = self.rows.get("task_attachments").map(Vec::as_slice).unwrap_or_default();
        let file = |row: &PeerRow| {
            let given = word(row, "filename").unwrap_or_default();
            let name = given.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c });
            let name: String = name.collect();
            let name = name.get(..name.floor_char_boundary(255)).unwrap_or_default();
            let name = if matches!(name, "" | "." | "..") { "file" } else { name };
            Some(PeerFile {
                id: AttachmentId(number(row, "id")?),
                filename: name.to_owned(),
                content_type: word(row, "content_type"),
                author: word(row, "uploaded_by"),
                stored_path: text(row, "stored_path").unwrap_or_default().into(),
            })
        };
        rows.iter().filter_map(file).collect()
    }

    /// Reads the database at `path`. A copy of it and of its log is made in the private directory `scratch` and read
    /// there: opening the file itself could write beside it.
    ///
    /// # Errors
    /// A file that is missing, damaged or has no tasks.
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
        let Foreign { rows, others: unknown } = foreign::read(&copy, path, &TABLES)?;
        Ok(PeerBoard { rows, unknown })
    }
}
