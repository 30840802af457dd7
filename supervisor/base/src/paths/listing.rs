//! Lists the boards and runs of a root by the names of its directories.

use std::path::Path;

use kernel::BoardName;

use super::Root;
use crate::failure::Failure;

impl Root {
    /// Returns true if the root was never created.
    pub fn is_nothing(&self) -> bool {
        let is_missing =
            |path: &Path| path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
        is_missing(self.dir()) && is_missing(&self.operator_socket())
    }

    /// Returns true if the whole root lies under one directory, as `--root` makes it.
    pub fn is_named(&self) -> bool {
        self.config == self.state
    }

    /// Returns the same root with another state directory.
    #[must_use]
    pub fn with_state(&self, state: &Path) -> Self {
        Root { state: state.to_owned(), runtime: state.join("run"), config: self.config.clone() }
    }

    /// Returns the existing boards, sorted by name.
    pub fn board_names(&self) -> Result<Vec<BoardName>, Failure> {
        let dir = self.boards();
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Failure::file("list the boards in", &dir, &e)),
        };
        let mut names: Vec<BoardName> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Returns true if the root has run directories. Each run that is not over has one.
    pub fn has_runs(&self) -> bool {
        self.board_names().unwrap_or_default().iter().any(|board| self.has_runs_of(board))
    }

    /// Returns true if a board has run directories.
    pub fn has_runs_of(&self, board: &BoardName) -> bool {
        std::fs::read_dir(self.runs(board)).is_ok_and(|mut runs| runs.next().is_some())
    }
}
