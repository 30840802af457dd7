//! Savepoints: a step that can fail or be undone inside a larger job, such as one task of a bulk verb.

use super::Board;
use crate::model::error::Error;
use crate::store::tx::Savepoint;

impl Board<'_> {
    /// Runs `step` and undoes all its changes, to show its result.
    pub fn rehearse<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.tx.savepoint(Savepoint::Attempt)?;
        let outcome = step(self);
        self.tx.undo_to(Savepoint::Attempt)?;
        outcome
    }

    /// Runs `step` in a savepoint. A failed step is undone, and the job goes on.
    ///
    /// The caller should let the whole job fail on an error of the store itself.
    pub fn attempt<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.tx.savepoint(Savepoint::Attempt)?;
        match step(self) {
            Ok(value) => {
                self.tx.release(Savepoint::Attempt)?;
                Ok(value)
            }
            Err(error) => {
                self.tx.undo_to(Savepoint::Attempt)?;
                Err(error)
            }
        }
    }
}
