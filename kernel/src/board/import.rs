//! Boards that come from elsewhere: an export of this program, or the database of the established one.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::Board;
use crate::blobs::Blobs;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::id::AttachmentId;
use crate::model::note::NewAttachment;
use crate::rules::authority;
use crate::transfer::adopt;
use crate::transfer::export::{self, Imported};
use crate::transfer::peer::{Adopted, PeerBoard};

impl Board<'_> {
    /// Reads an exported board into this one, which has to be empty, and its files into `blobs`. The caller keeps sweeps
    /// away until it is committed, and sweeps if it is not.
    pub fn import(
        &mut self,
        lines: &mut dyn BufRead,
        blobs: &Blobs,
        actor: &Actor,
    ) -> Result<Imported, Error> {
        authority::person(actor, "import a board")?;
        let imported = export::import(self.tx, blobs, lines)?;
        self.require_readable()?;
        Ok(imported)
    }

    /// Takes over the board of the established program into this one, which has to be empty. `files` are those of its
    /// attachments whose bytes are stored here; the others are not taken. Returns what was taken and what was not.
    pub fn adopt(
        &mut self,
        peer: &PeerBoard,
        files: &BTreeMap<AttachmentId, NewAttachment>,
        actor: &Actor,
    ) -> Result<Adopted, Error> {
        authority::person(actor, "import a board")?;
        let adopted = adopt::adopt(self.tx, peer, files, actor, self.now())?;
        self.require_readable()?;
        Ok(adopted)
    }

    /// Refuses values that satisfy the schema and mean nothing: each task is read as everyone will.
    fn require_readable(&self) -> Result<(), Error> {
        let readable = |error: Error| match error {
            Error::Storage { source, .. } => {
                Error::invalid("file", format!("it has an invalid value: {source}"), "nothing was imported")
            }
            other @ (Error::NotFound { .. }
            | Error::Conflict { .. }
            | Error::Illegal { .. }
            | Error::Invalid { .. }
            | Error::Forbidden { .. }
            | Error::Exhausted { .. }
            | Error::Writer { .. }) => other,
        };
        self.tx.read_all_tasks().map_err(readable)?;
        self.tx.read_all_comments().map_err(readable)?;
        self.tx.read_all_runs().map_err(readable)?;
        self.replay().map(drop).map_err(readable)
    }
}
