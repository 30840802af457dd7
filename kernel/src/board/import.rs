//! Imports boards: an export of this program, or the database of Hermes Kanban.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::Board;
use crate::blobs::Blobs;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::id::AttachmentId;
use crate::model::note::NewAttachment;
use crate::rules::authority;
use crate::store::imported::{ImportedPlace, ImportedPolicy};
use crate::store::values::WorkspaceRule;
use crate::transfer::adopt;
use crate::transfer::export::{self, Imported};
use crate::transfer::peer::{Adopted, PeerBoard};

impl Board<'_> {
    /// Imports an exported board into this board, which has to be empty, and its files into `blobs`. The caller prevents
    /// sweeps of blobs until the commit, and sweeps if the commit fails.
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

    /// Imports a board of Hermes Kanban into this board, which has to be empty. `files` are the attachments whose bytes
    /// are already stored; other attachments are left out. Returns the lists of imported and omitted rows.
    pub fn adopt(
        &mut self,
        peer: &PeerBoard,
        files: &BTreeMap<AttachmentId, NewAttachment>,
        actor: &Actor,
    ) -> Result<Adopted, Error> {
        authority::person(actor, "import a board")?;
        let adopted = adopt::adopt(self.tx, peer, files, actor, self.now())?;
        // The log has no change that this import has not made by the rules itself, so it needs no replay.
        require_none(&self.tx.unread_rows()?)?;
        Ok(adopted)
    }

    /// Returns the policies under which the tasks of an import would run, before anything of it is committed.
    pub fn imported_policies(&self) -> Result<Vec<ImportedPolicy>, Error> {
        self.tx.imported_policies()
    }

    /// Returns the directories and repositories in which the tasks of an import would work, before anything of it is
    /// committed.
    pub fn imported_places(&self) -> Result<Vec<ImportedPlace>, Error> {
        self.tx.imported_places()
    }

    /// Gives a scratch directory to adopted tasks whose workspace has no form of a workspace. Returns their number.
    pub fn mend_workspaces(&mut self, workspace: WorkspaceRule<'_>) -> Result<usize, Error> {
        self.tx.mend_workspaces(workspace)
    }

    /// Refuses tasks of an import whose workspace has no form of a workspace, before anything of it is committed.
    pub fn require_workspaces(&self, workspace: WorkspaceRule<'_>) -> Result<(), Error> {
        require_none(&self.tx.unfit_workspaces(workspace)?)
    }

    /// Refuses values that satisfy the schema but have no meaning: reads each row as every later reader will.
    fn require_readable(&self) -> Result<(), Error> {
        let readable = |error: Error| match error {
            Error::Storage { source, .. } => invalid(&source),
            other @ (Error::NotFound { .. }
            | Error::Conflict { .. }
            | Error::Illegal { .. }
            | Error::Invalid { .. }
            | Error::Forbidden { .. }
            | Error::Exhausted { .. }
            | Error::Writer { .. }) => other,
        };
        require_none(&self.tx.unread_rows()?)?;
        self.replay().map(drop).map_err(readable)
    }
}

/// Refuses an import with such rows.
fn require_none(rows: &[String]) -> Result<(), Error> {
    rows.first().map_or(Ok(()), |row| Err(invalid(row)))
}

fn invalid(why: &dyn std::fmt::Display) -> Error {
    Error::invalid("file", format!("it has an invalid value: {why}"), "nothing was imported")
}
