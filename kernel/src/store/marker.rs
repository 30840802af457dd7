//! Marker beside a board: identifies the board, and stays when the board's file is gone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::replace;
use super::open_error::OpenError;
use crate::model::id::{BoardId, BoardName};

/// Content of `board.json` beside a board. Readers ignore unknown fields.
#[derive(Serialize, Deserialize)]
struct Marker {
    version: u32,
    board: BoardId,
    name: Option<BoardName>,
}

/// Returns the path of a board's marker.
pub(crate) fn path(board: &Path) -> PathBuf {
    board.with_file_name("board.json")
}

/// Returns the board that has existed here.
pub(crate) fn read(marker: &Path) -> Result<Option<BoardId>, OpenError> {
    let text = match fs::read_to_string(marker) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OpenError::Io { step: "read", path: marker.to_owned(), source }),
    };
    serde_json::from_str::<Marker>(&text).map(|marker| Some(marker.board)).map_err(|error| {
        OpenError::io("understand", marker)(io::Error::new(io::ErrorKind::InvalidData, error))
    })
}

/// Writes the marker of the board at a path.
pub(crate) fn write(at: &Path, board: BoardId, name: Option<&BoardName>) -> Result<(), OpenError> {
    let marker = path(at);
    let text = serde_json::json!({ "version": 1, "board": board, "name": name }).to_string();
    replace(&marker, text.as_bytes()).map_err(|source| OpenError::Io { step: "write", path: marker, source })
}
