//! Projections: databases in the format of Hermes Kanban with a single task, for workers that bring their own boards, and
//! the changes that such a worker makes there.
//!
//! The worker may write anything to the file. Only rows of known columns are read back, limited in number and length.
//! They have no effect by themselves: the caller turns them into verbs, which the board checks.
//!
//! See decision 0195.

use std::path::Path;

use crate::model::projected_use::ProjectedUse;
use crate::model::projection::{Projected, ProjectedWork, Projection};
use crate::store::open_error::OpenError;
use crate::store::{projected_use, projection};

impl Projection {
    /// Creates the database at `path`, in an existing directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn make(path: &Path, task: &Projected) -> Result<Self, OpenError> {
        projection::make(path, task)
    }

    /// Returns the changes since the last look.
    ///
    /// # Errors
    /// The file cannot be read: the worker has removed or damaged it, or is writing to it.
    pub fn look(&mut self) -> Result<ProjectedWork, OpenError> {
        projection::look(self)
    }

    /// Adds the reason of a refusal as a comment on the task, where the worker reads it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn answer(&mut self, text: &str, now: i64) -> Result<(), OpenError> {
        projection::answer(self, text, now)
    }

    /// Returns the task to a state in which its worker can end it again, after a refused verdict.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn reopen(&mut self) -> Result<(), OpenError> {
        projection::reopen(self)
    }
}

impl ProjectedUse {
    /// Reads the use of all conversations in the database at `path` so far.
    ///
    /// # Errors
    /// The file does not exist, or cannot be read.
    pub fn read(path: &Path) -> Result<Self, OpenError> {
        projected_use::read(path)
    }
}
