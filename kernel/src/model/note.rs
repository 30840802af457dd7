//! What is said about a task: comments, events and attachments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::actor::{ActorKind, Label};
use crate::model::clock::Timestamp;
use crate::model::id::{AttachmentId, CommentId, Digest, EventId, Profile, RunId, TaskId, Tenant};

/// One row of the event log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its id; later events have greater ones.
    pub id: EventId,
    /// The task; none where it is about more than one, such as a hold on a profile.
    pub task_id: Option<TaskId>,
    /// The run that it is about; none where it is about no single run.
    pub run_id: Option<RunId>,
    /// The tenant of the task; none of a task without one.
    pub tenant: Option<Tenant>,
    /// What happened, as a word of [`EventKind`](crate::EventKind); a later release may have written one that this one does not have.
    pub kind: String,
    /// The details, by the keys of its kind; none where the kind has none.
    pub payload: Option<Value>,
    /// When it happened.
    pub created_at: Timestamp,
    /// Who did it: `person:alice`.
    pub actor: Option<String>,
}

impl Event {
    /// Returns what kind of caller did it, where one is named.
    pub fn actor_kind(&self) -> Option<ActorKind> {
        Label::parse(self.actor.as_deref()?).kind
    }
}

/// A note on a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    /// Its id.
    pub id: CommentId,
    /// The task.
    pub task_id: TaskId,
    /// Who wrote it.
    pub author: String,
    /// What kind of author that is.
    pub author_kind: ActorKind,
    /// The text.
    pub body: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// The run whose worker wrote it; none where no worker did.
    pub run_id: Option<RunId>,
}

/// A file that belongs to a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Its number, by which `attachments get` names it.
    pub id: AttachmentId,
    /// The task.
    pub task_id: TaskId,
    /// Its name, without any `/`.
    pub filename: String,
    /// Its media type.
    pub content_type: Option<String>,
    /// Its length in bytes.
    pub size: u64,
    /// Who added it.
    pub uploaded_by: Option<String>,
    /// What it contains, which is the name under which it is kept.
    pub sha256: Digest,
    /// When it was added.
    pub created_at: Timestamp,
    /// The run whose worker added it; none where no worker did.
    pub run_id: Option<RunId>,
    /// The path under which its run declared it as a part of its result; none where it was attached by itself.
    pub artifact: Option<String>,
}

/// A profile that a comment mentions, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mention {
    /// The profile.
    pub profile: Profile,
    /// The task that was made for it; none where that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Why none was made; none where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A file to note on a task. Its bytes are durable already.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    /// Its name, without any `/`.
    pub filename: String,
    /// Its media type.
    pub content_type: Option<String>,
    /// What it contains.
    pub sha256: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// Who adds it, if somebody else than the caller; a worker's own name stands, whatever it says.
    pub author: Option<String>,
}
