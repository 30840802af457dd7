//! Note beside a worktree that marks it as incomplete.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::WorktreeError;
use crate::name::Name;
use lease::lock;

/// File beside the worktree that the worker cannot reach. It is locked while the worktree is made or removed, and it is
/// not empty as long as the worktree is incomplete and contains no work.
pub(crate) struct Note {
    file: File,
    path: PathBuf,
    pub(crate) incomplete: bool,
}

impl Note {
    pub(crate) fn take(directory: &Path, id: &Name) -> Result<Self, WorktreeError> {
        let path = directory.join(format!(".{id}.incomplete"));
        let failed = |source| WorktreeError::Note { path: path.clone(), source };
        let file = lock::take(&path, lock::wait).map_err(failed)?;
        let incomplete = file.metadata().map_err(failed)?.len() > 0;
        Ok(Self { file, path, incomplete })
    }

    /// Records durably that the worktree contains no work until the note is removed.
    pub(crate) fn mark_incomplete(&mut self) -> Result<(), WorktreeError> {
        self.file
            .write_all(b"incomplete\n")
            .and_then(|()| self.file.sync_data())
            .map_err(|source| WorktreeError::Note { path: self.path.clone(), source })
    }

    /// Removes the note while it is locked, because the worktree is complete or gone.
    pub(crate) fn discard(self) -> Result<(), WorktreeError> {
        fs::remove_file(&self.path).map_err(|source| WorktreeError::Note { path: self.path, source })
    }
}
