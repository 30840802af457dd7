//! A step that may fail without its neighbours: one task of a bulk verb.

use super::Board;
use crate::model::error::Error;
use crate::store::tx::Savepoint;

impl Board<'_> {
    /// Runs `step` to see what it would come to: whatever it did is undone.
    pub fn rehearse<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.tx.savepoint(Savepoint::Attempt)?;
        let outcome = step(self);
        self.tx.undo_to(Savepoint::Attempt)?;
        outcome
    }

    /// Runs `step` in a savepoint of its own: what it did is undone when it fails, and the job goes on.
    ///
    /// An error of the store itself is returned like any other; the job should then fail as a whole.
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
