//! Watches the file of a board, so that writes of another program are detected before anything more is acknowledged.
//!
//! See decision 0043.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::still_holds;
use super::open_error::{OpenError, unreadable};
use super::presence::Presence;
use super::tx::Database;
use crate::model::error::Error;
use crate::model::id::{BoardId, EventId};

/// File of a board, with the state after its last write.
pub(crate) struct Watched {
    path: PathBuf,
    presence: Arc<Presence>,
    board: BoardId,
    last_event: Cell<EventId>,
}

impl Watched {
    /// Records the state of a board that was just opened.
    pub(crate) fn open(path: &Path, database: &Database) -> Result<Self, OpenError> {
        let io = |step, source| OpenError::Io { step, path: path.to_owned(), source };
        let presence = Presence::open(path).map_err(|source| io("look at", source))?;
        let held = || -> Result<_, Error> {
            let tx = database.read()?;
            Ok((tx.board_id()?, tx.last_event()?))
        };
        let (board, last_event) = held().map_err(|error| {
            if error.is_damage() {
                unreadable(path, &error)
            } else {
                io("read the identity of", std::io::Error::other(error))
            }
        })?;
        let (path, presence) = (path.to_owned(), Arc::new(presence));
        Ok(Self { path, presence, board, last_event: Cell::new(last_event) })
    }

    /// Returns the identity of the board.
    pub(crate) fn board(&self) -> BoardId {
        self.board
    }

    /// Returns the observer of the file, for other threads.
    pub(crate) fn presence(&self) -> Arc<Presence> {
        Arc::clone(&self.presence)
    }

    /// Refuses to go on if the path of this board now holds another file or another board.
    pub(crate) fn require(&self) -> Result<(), Error> {
        self.presence.require_own(|| still_holds(&self.path, self.board, self.last_event.get()))
    }

    /// Records a commit, which may have moved the log into the database. Refuses a commit to a file that its path no
    /// longer names.
    pub(crate) fn committed(&self, last_event: EventId) -> Result<(), Error> {
        self.presence.require_written()?;
        self.last_event.set(last_event);
        Ok(())
    }

    /// Records that the log was moved into the database.
    pub(crate) fn note_written(&self) {
        // The error can be ignored: the next write reports a file that was removed in the meantime.
        drop(self.presence.require_written());
    }
}
