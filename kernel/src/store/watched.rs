//! The file of a board as its writer has left it: what somebody else writes there is noticed before more is acknowledged.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::still_holds;
use super::open_error::OpenError;
use super::presence::Presence;
use super::tx::Database;
use crate::model::error::Error;
use crate::model::id::{BoardId, EventId};

/// The file of a board, and what it held when it was last written.
pub(crate) struct Watched {
    path: PathBuf,
    presence: Arc<Presence>,
    board: BoardId,
    last_event: Cell<EventId>,
}

impl Watched {
    /// Notes what a board that was just opened holds.
    pub(crate) fn of(path: &Path, database: &Database) -> Result<Self, OpenError> {
        let io = |step, source| OpenError::Io { step, path: path.to_owned(), source };
        let presence = Presence::of(path).map_err(|source| io("look at", source))?;
        let held = || -> Result<_, Error> {
            let tx = database.read()?;
            Ok((tx.board_id()?, tx.last_event()?))
        };
        let (board, last_event) =
            held().map_err(|error| io("read the identity of", std::io::Error::other(error)))?;
        let (path, presence) = (path.to_owned(), Arc::new(presence));
        Ok(Self { path, presence, board, last_event: Cell::new(last_event) })
    }

    /// What others may ask of the file.
    pub(crate) fn presence(&self) -> Arc<Presence> {
        Arc::clone(&self.presence)
    }

    /// Refuses where another file, or another board, is where this one was.
    pub(crate) fn require(&self) -> Result<(), Error> {
        self.presence.require_own(|| still_holds(&self.path, self.board, self.last_event.get()))
    }

    /// Notes a commit, which may have moved the log into the database; refuses one to a file that nobody can find.
    pub(crate) fn committed(&self, last_event: EventId) -> Result<(), Error> {
        self.presence.require_written()?;
        self.last_event.set(last_event);
        Ok(())
    }

    /// Notes that the log was moved into the database.
    pub(crate) fn note_written(&self) {
        // A file that is gone meanwhile is noticed by the next write.
        drop(self.presence.require_written());
    }
}
