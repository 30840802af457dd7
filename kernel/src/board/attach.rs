//! Attachments of tasks. The board stores names and digests; [`Blobs`](crate::Blobs) store the bytes.

use serde_json::json;

use super::Board;
use super::charge::Cost;
use crate::model::actor::{Actor, ActorKind};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{AttachmentId, TaskId};
use crate::model::limits;
use crate::model::missing::Missing;
use crate::model::note::{Attachment, NewAttachment};
use crate::model::quota::Bound;
use crate::model::task::Task;
use crate::rules::authority;
use crate::store::attachments::Origin;

impl Board<'_> {
    /// Adds an attachment to a task. A worker attaches files to its own task only.
    pub fn attach(&mut self, id: &TaskId, file: &NewAttachment, actor: &Actor) -> Result<Attachment, Error> {
        let task = self.task_for(id, actor)?;
        attachable(id, &file.filename, actor)?;
        file.content_type.as_deref().map_or(Ok(()), |kind| limits::line("content_type", kind, 255))?;
        let by = match actor.kind {
            ActorKind::Worker => actor.name.as_str(),
            ActorKind::Person | ActorKind::System => file.author.as_deref().unwrap_or(&actor.name),
        };
        limits::line("author", by, limits::WORD)?;
        self.charge(actor, Cost::one(Bound::Attachments).text([file.filename.as_str()]).file(file.size))?;
        let run = actor.run.as_ref().map(|own| own.run);
        self.add_file(&task, file, &Origin { by, run, artifact: None }, &actor.label())
    }

    /// Removes an attachment from its task and returns it. The caller removes the file if no other attachment uses it.
    pub fn detach_file(&mut self, number: AttachmentId, actor: &Actor) -> Result<Attachment, Error> {
        authority::person(actor, "remove an attachment")?;
        let file = self.attachment(number)?.ok_or_else(|| Error::missing(Missing::Attachment, number))?;
        // An attachment of a task that the caller may not see does not exist for the caller.
        let task = self.task_for(&file.task_id, actor).map_err(|error| {
            if matches!(error, Error::NotFound { .. }) {
                Error::missing(Missing::Attachment, number)
            } else {
                error
            }
        })?;
        self.tx.delete_attachment(number)?;
        let payload = json!({ "attachment": number, "filename": file.filename });
        self.append(&task, None, EventKind::AttachmentRemoved, payload, &actor.label())?;
        Ok(file)
    }

    pub(super) fn add_file(
        &self,
        task: &Task,
        file: &NewAttachment,
        origin: &Origin<'_>,
        label: &str,
    ) -> Result<Attachment, Error> {
        if self.tx.count_attachments(&task.id)? >= limits::ATTACHMENTS {
            return Err(Error::conflict(
                format!("{} has {} attached files, the limit of a task", task.id, limits::ATTACHMENTS),
                "pack several into one, or remove some with `supervisor attach-rm`",
            ));
        }
        let number = self.tx.insert_attachment(&task.id, file, origin, self.now())?;
        let mut payload = json!({
            "attachment": number, "filename": file.filename, "size": file.size, "by": origin.by,
        });
        if let Some(path) = origin.artifact {
            payload["artifact"] = path.into();
        }
        let run = origin.run.or(task.current_run_id);
        self.append(task, run, EventKind::Attached, payload, label)?;
        self.attachment(number)?.ok_or_else(|| Error::missing(Missing::Attachment, number))
    }
}

impl crate::board::view::View<'_> {
    /// Refuses an attachment before its bytes are transferred.
    pub fn may_attach(&self, id: &TaskId, filename: &str, actor: &Actor) -> Result<(), Error> {
        self.task_for(id, actor)?;
        attachable(id, filename, actor)
    }
}

fn attachable(id: &TaskId, name: &str, actor: &Actor) -> Result<(), Error> {
    authority::own_task(actor, id, None)?;
    plain(name)
}

/// Refuses a text that is not a plain file name.
pub(super) fn plain(name: &str) -> Result<(), Error> {
    let refuse = |why: &str| {
        let hint = "give it a plain name of up to 255 bytes with --name";
        Err(Error::invalid("filename", format!("{name:?} {why}"), hint))
    };
    if name.len() > 255 {
        return refuse("is longer than 255 bytes");
    }
    if name.contains('/') || matches!(name, "" | "." | "..") {
        return refuse("is not the name of a file");
    }
    if name.chars().any(char::is_control) {
        return refuse("has control characters");
    }
    Ok(())
}
