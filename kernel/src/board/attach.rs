//! Files that belong to tasks. The board knows their names and paths, not their bytes.

use serde_json::json;

use super::Board;
use crate::actor::Actor;
use crate::authority;
use crate::error::Error;
use crate::id::TaskId;
use crate::limits;
use crate::note::Attachment;
use crate::store::attachments;

/// A file to note on a task.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    /// Its name, without any `/`.
    pub filename: String,
    /// Where it is kept.
    pub stored_path: String,
    /// Its media type.
    pub content_type: Option<String>,
    /// Its length in bytes.
    pub size: u64,
}

impl Board<'_> {
    /// Notes a file on a task. A worker attaches to its own task only.
    pub fn attach(&mut self, id: &TaskId, file: &NewAttachment, actor: &Actor) -> Result<Attachment, Error> {
        let task = self.admit(id, actor)?;
        authority::own_task(actor, id, None)?;
        let name = &file.filename;
        limits::bytes("filename", name, 255)?;
        let hidden = matches!(name.as_str(), "" | "." | "..");
        if hidden || name.contains('/') || name.chars().any(char::is_control) {
            return Err(Error::invalid(
                "filename",
                format!("{name:?} is not a plain file name"),
                "use a plain name",
            ));
        }
        let number = attachments::insert(self.conn(), id, file, &actor.name, self.now())?;
        let payload = json!({ "filename": name, "size": file.size, "by": actor.name });
        self.tell(&task, task.current_run_id, "attached", Some(payload), &actor.label())?;
        self.attachment(number)?.ok_or_else(|| Error::missing("attachment", number))
    }

    /// Forgets a file of a task. Returns what it was, for the caller to remove.
    pub fn detach_file(&mut self, number: i64, actor: &Actor) -> Result<Attachment, Error> {
        authority::person(actor, "remove an attachment")?;
        let file = self.attachment(number)?.ok_or_else(|| Error::missing("attachment", number))?;
        let task = self.admit(&file.task_id, actor)?;
        attachments::delete(self.conn(), number)?;
        let payload = json!({ "filename": file.filename });
        self.tell(&task, None, "attachment_removed", Some(payload), &actor.label())?;
        Ok(file)
    }
}
