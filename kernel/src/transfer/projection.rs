//! One task as the established program keeps it: a database with that task alone, for a worker that brings its own board, and what such a
//! worker has done there.
//!
//! The worker writes to the file as it likes. What is read back is rows of known columns, bounded in number and length, and means
//! nothing by itself: its reader makes verbs of it, which the board checks.

use std::path::Path;

use crate::model::projected_use::ProjectedUse;
use crate::model::projection::{Projected, ProjectedWork, Projection};
use crate::store::open_error::OpenError;
use crate::store::{projected_use, projection};

impl Projection {
    /// Makes the database at `path`, in a directory that is there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn make(path: &Path, task: &Projected) -> Result<Self, OpenError> {
        projection::make(path, task)
    }

    /// Returns what has been done since the last look.
    ///
    /// # Errors
    /// It cannot be read: the worker has removed or damaged it, or is writing to it.
    pub fn look(&mut self) -> Result<ProjectedWork, OpenError> {
        projection::look(self)
    }

    /// Writes into the thread of the task why something was refused. The worker reads it there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn answer(&mut self, text: &str, now: i64) -> Result<(), OpenError> {
        projection::answer(self, text, now)
    }

    /// Puts the task back to where its worker can end it, because the ending was refused.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn reopen(&mut self) -> Result<(), OpenError> {
        projection::reopen(self)
    }
}

impl ProjectedUse {
    /// Reads what the conversations in the database at `path` have used so far.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn read(path: &Path) -> Result<Self, OpenError> {
        projected_use::read(path)
    }
}
