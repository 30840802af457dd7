//! Verdicts: decisions about a run that take effect when the run is over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::error::Error;
use crate::model::id::{ApprovalClass, Profile, TaskId};
use crate::model::limits;
use crate::model::outcome::BlockKind;
use crate::model::words::words;

/// Result that a finished run hands over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    /// Result, stored with the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Summary of the work, for the tasks that build on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// JSON object for machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Files in the workspace that the board keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
}

impl Handoff {
    /// Refuses a handoff whose texts or lists are too long. Callers ask this before they look for the named files.
    pub fn within_limits(&self) -> Result<(), Error> {
        limits::maybe("summary", self.summary.as_deref(), limits::SUMMARY)?;
        limits::maybe("result", self.result.as_deref(), limits::SUMMARY)?;
        limits::metadata(self.metadata.as_ref())?;
        if self.artifacts.len() > limits::ARTIFACTS {
            let count = self.artifacts.len();
            let limit = limits::ARTIFACTS;
            return Err(Error::invalid(
                "artifacts",
                format!("{count} entries, the limit is {limit}"),
                "pack them",
            ));
        }
        self.artifacts.iter().try_for_each(|path| limits::bytes("artifacts", path, limits::WORD))
    }
}

/// Work that is handed to a reviewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewRequest {
    /// The work.
    #[serde(flatten)]
    pub handoff: Handoff,
    /// Profile of the reviewer; absent means a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<Profile>,
    /// Author of the work, who may not review it: `worker:<profile>` or `person:<name>`.
    pub work_by: String,
}

/// Reason why a task cannot go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blocking {
    /// Kind of thing that the task waits for.
    pub kind: BlockKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// True if a person has cancelled the task. No worker can set it.
    #[serde(skip)]
    pub is_cancel: bool,
}

/// Returns a text with the canceller's name and the reason.
pub(crate) fn cancelled_by(canceller: &str, why: Option<&str>) -> String {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("cancelled by {canceller}{why}")
}

/// Question of a worker that a person answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    pub text: String,
    /// Answers to choose from, up to [`Question::CHOICES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// True if an answer in free words is accepted too. Without choices it always is.
    #[serde(default)]
    pub free_text: bool,
    /// Class of the approval that a worker asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalClass>,
    /// Results of the parents, for a request for an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ParentResult>,
}

/// Summary of a finished parent, for the person who decides on an approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParentResult {
    /// Id of the parent.
    pub task: String,
    pub title: String,
    /// Summary, cut to the space that a request has.
    pub summary: Option<String>,
}

impl Question {
    /// Largest number of answers to choose from.
    pub const CHOICES: usize = 6;

    /// Returns the command by which a person answers. Its example is the first choice.
    pub fn command(&self, task: &TaskId) -> String {
        let reply = if self.choices.is_empty() { "'…'" } else { "1" };
        format!("supervisor answer {task} {reply}")
    }

    /// Returns the answer that a reply means: the number of a choice, a choice itself, or other words if they are
    /// accepted.
    pub fn resolve(&self, reply: &str) -> Option<String> {
        let reply = reply.trim();
        let by_number =
            reply.parse::<usize>().ok().and_then(|number| self.choices.get(number.checked_sub(1)?));
        let by_name = || self.choices.iter().find(|choice| choice.to_lowercase() == reply.to_lowercase());
        let other =
            || ((self.free_text || self.choices.is_empty()) && !reply.is_empty()).then(|| reply.to_owned());
        by_number.or_else(by_name).cloned().or_else(other)
    }
}

impl Default for Blocking {
    fn default() -> Self {
        Self { kind: BlockKind::NeedsInput, reason: None, question: None, is_cancel: false }
    }
}

words! {
    /// Destination of a task that a person moves.
    "destination"
    Destination {
        Triage => "triage",
        /// Back into the queue: `todo`, `scheduled` or `ready`, as its parents and its time allow.
        Queue => "queue",
    }
}

words! {
    /// Kind of a verdict, without its data.
    "verdict"
    VerdictKind {
        /// The task is done.
        Complete => "complete",
        /// The task waits for a person or a task.
        Block => "block",
        /// The work waits for a reviewer.
        RequestReview => "request_review",
        /// The work is approved.
        Approve => "approve",
        /// The work is sent back.
        RequestChanges => "request_changes",
        /// The task is archived.
        Archive => "archive",
        /// The task moves back to triage or into the queue.
        Move => "move",
    }
}

impl VerdictKind {
    /// Returns true if this verdict may follow an earlier verdict about the same run: only archiving may.
    pub(crate) fn may_replace(self, before: Option<VerdictKind>) -> bool {
        before.is_none_or(|before| before != VerdictKind::Archive && self == VerdictKind::Archive)
    }
}

/// Verdict about an open run, in effect when the run has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// The task is done.
    Complete(Handoff),
    /// The task waits for a person or a task.
    Block(Blocking),
    /// The work waits for a reviewer.
    RequestReview(ReviewRequest),
    /// A reviewer approves the work: the task is done.
    Approve,
    /// A reviewer sends the work back.
    RequestChanges {
        /// Changes that the reviewer asks for.
        reason: String,
    },
    /// The task is archived, with the handoff of an earlier verdict.
    Archive {
        /// Handoff of a completion that was recorded before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handoff: Option<Handoff>,
    },
    /// The task moves back.
    Move {
        /// Destination of the task.
        to: Destination,
    },
}

impl Verdict {
    /// Returns the kind of the verdict.
    pub fn kind(&self) -> VerdictKind {
        match self {
            Verdict::Complete(_) => VerdictKind::Complete,
            Verdict::Block(_) => VerdictKind::Block,
            Verdict::RequestReview(_) => VerdictKind::RequestReview,
            Verdict::Approve => VerdictKind::Approve,
            Verdict::RequestChanges { .. } => VerdictKind::RequestChanges,
            Verdict::Archive { .. } => VerdictKind::Archive,
            Verdict::Move { .. } => VerdictKind::Move,
        }
    }

    /// Returns the files that were declared as parts of the result.
    pub fn artifacts(&self) -> &[String] {
        match self {
            Verdict::Complete(handoff) | Verdict::Archive { handoff: Some(handoff) } => &handoff.artifacts,
            Verdict::RequestReview(request) => &request.handoff.artifacts,
            Verdict::Block(_)
            | Verdict::Approve
            | Verdict::RequestChanges { .. }
            | Verdict::Archive { handoff: None }
            | Verdict::Move { .. } => &[],
        }
    }
}
