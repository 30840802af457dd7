//! Records about a task: comments, events and attachments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::actor::{ActorKind, Label};
use crate::model::clock::Timestamp;
use crate::model::id::{AttachmentId, CommentId, Digest, EventId, Profile, RunId, TaskId, Tenant};

/// Row of the event log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Id of the event; later events have greater ids.
    pub id: EventId,
    /// Task of the event; none for an event about several tasks, such as a hold on a profile.
    pub task_id: Option<TaskId>,
    /// Run of the event; none for an event about no single run.
    pub run_id: Option<RunId>,
    /// Tenant of the task; none for a task without a tenant.
    pub tenant: Option<Tenant>,
    /// Kind of the event, as a word of [`EventKind`](crate::EventKind). A later release may have written a word that this
    /// release does not know.
    pub kind: String,
    /// Details, by the keys of the kind; none for a kind without details.
    pub payload: Option<Value>,
    /// Time of the event.
    pub created_at: Timestamp,
    /// Actor that caused the event: `person:alice`.
    pub actor: Option<String>,
}

impl Event {
    /// Returns the kind of the actor, if the event names an actor.
    pub fn actor_kind(&self) -> Option<ActorKind> {
        Label::parse(self.actor.as_deref()?).kind
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    pub id: CommentId,
    pub task_id: TaskId,
    pub author: String,
    pub author_kind: ActorKind,
    /// Text of the comment.
    pub body: String,
    /// Time of writing.
    pub created_at: Timestamp,
    /// Run whose worker wrote the comment; none for other authors.
    pub run_id: Option<RunId>,
}

/// File that is attached to a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Number of the attachment, by which `attachments get` names it.
    pub id: AttachmentId,
    pub task_id: TaskId,
    /// Name of the file, without any `/`.
    pub filename: String,
    /// Media type of the file.
    pub content_type: Option<String>,
    /// Length in bytes.
    pub size: u64,
    /// Caller who added the file.
    pub uploaded_by: Option<String>,
    /// Digest of the content, which is also the name of the stored file.
    pub sha256: Digest,
    /// Time at which the file was added.
    pub created_at: Timestamp,
    /// Run whose worker added the file; none for other callers.
    pub run_id: Option<RunId>,
    /// Path under which the run declared the file as a part of its result; none for a file attached on its own.
    pub artifact: Option<String>,
}

/// Profile that a comment mentions, with the result of the mention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mention {
    pub profile: Profile,
    /// Task that was made for the profile; none when the board refused to make a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Reason of the refusal; none when a task was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// File to attach to a task. Its bytes are already durable.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    /// Name of the file, without any `/`.
    pub filename: String,
    /// Media type of the file.
    pub content_type: Option<String>,
    /// Digest of the content.
    pub sha256: Digest,
    /// Length in bytes.
    pub size: u64,
    /// Author, where it is not the caller. A worker's own name always stands, whatever the worker sends.
    pub author: Option<String>,
}
