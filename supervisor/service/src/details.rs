//! Descriptive fields of a board, such as title, colour and working directory. They are stored in `details.json`
//! beside the board, which itself knows only its name.

use std::fs::File;
use std::path::{Path, PathBuf};

use kernel::BoardName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shim::rundir::write_json;

use base::failure::Failure;
use base::paths::Root;

const FILE: &str = "details.json";

/// Descriptive fields of a board. A request with an unknown field is refused; stored records are read leniently by
/// [`Details::of_record`].
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Details {
    /// Its title
    #[arg(long)]
    pub name: Option<String>,
    /// Its description
    #[arg(long)]
    pub description: Option<String>,
    /// Its icon
    #[arg(long)]
    pub icon: Option<String>,
    /// Its colour; `--color` is the same here
    #[arg(long)]
    #[serde(rename = "color")]
    pub colour: Option<String>,
    /// The directory that `--workspace worktree` and `--workspace dir` use on it
    #[arg(long, value_name = "DIR")]
    pub default_workdir: Option<PathBuf>,
}

impl Details {
    /// Reads the details of the board in a directory.
    pub fn read(board: &Path) -> Self {
        // An unreadable or invalid details file is ignored: it must not make the board unusable.
        std::fs::read(board.join(FILE))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .and_then(Self::of_record)
            .unwrap_or_default()
    }

    /// Parses a record of this or another release. Unknown fields are ignored. None if the record is invalid.
    pub fn of_record(mut record: serde_json::Value) -> Option<Self> {
        let known = Details::default().as_value().ok()?;
        if let Some(fields) = record.as_object_mut() {
            fields.retain(|name, _| known.get(name).is_some());
        }
        serde_json::from_value(record).ok()
    }

    /// Applies a change: a missing field stays, and an empty field is removed.
    #[must_use]
    pub fn changed(self, change: Details) -> Self {
        fn one<T>(old: Option<T>, new: Option<T>, is_empty: impl Fn(&T) -> bool) -> Option<T> {
            match new {
                None => old,
                Some(new) => Some(new).filter(|new| !is_empty(new)),
            }
        }
        Details {
            name: one(self.name, change.name, String::is_empty),
            description: one(self.description, change.description, String::is_empty),
            icon: one(self.icon, change.icon, String::is_empty),
            colour: one(self.colour, change.colour, String::is_empty),
            default_workdir: one(self.default_workdir, change.default_workdir, |path| {
                path.as_os_str().is_empty()
            }),
        }
    }

    /// Stores the details of the board in a directory.
    pub fn write(&self, board: &Path) -> Result<(), Failure> {
        write_json(board, FILE, self)
            .and_then(|()| File::open(board.join(FILE))?.sync_all())
            .and_then(|()| File::open(board)?.sync_all())
            .map_err(|e| Failure::file("write", &board.join(FILE), &e))
    }

    /// Returns the details as JSON, which accompanies exports of the board.
    pub fn as_text(&self) -> Result<String, Failure> {
        serde_json::to_string(self)
            .map_err(|e| Failure::failed(format!("failed to write down the details: {e}")))
    }

    /// Returns the details as a JSON value.
    pub fn as_value(&self) -> Result<serde_json::Value, Failure> {
        serde_json::to_value(self)
            .map_err(|e| Failure::failed(format!("failed to write down the details: {e}")))
    }

    /// Parses details that accompany a board; none if they are invalid.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().and_then(Self::of_record)
    }
}

/// Returns the workspace for a kind without a path, on a board with a default directory.
pub fn workspace(root: &Root, board: &BoardName, text: &str) -> Option<String> {
    if !matches!(text, "worktree" | "dir") {
        return None;
    }
    let details = Details::read(&root.boards().join(board.as_str()));
    details.default_workdir.map(|dir| format!("{text}:{}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_an_unknown_field_is_refused_and_a_record_of_a_later_release_is_read() {
        let text = r#"{"name": "Ours", "color": null, "later": 1}"#;
        assert!(serde_json::from_str::<Details>(text).is_err());
        let parsed = Details::parse(text).unwrap();
        assert_eq!((parsed.name.as_deref(), parsed.colour), (Some("Ours"), None));
        assert!(Details::parse("{\"name\": 7}").is_none());
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), text).unwrap();
        assert_eq!(Details::read(dir.path()).name.as_deref(), Some("Ours"));
    }
}
