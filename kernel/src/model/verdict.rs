//! What was decided about a run before it is over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::error::Error;
use crate::model::id::{ApprovalClass, Profile, TaskId};
use crate::model::limits;
use crate::model::outcome::BlockKind;
use crate::model::words::words;

/// What a finished run hands over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    /// The result, kept on the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What was done, for the tasks that build on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// A JSON object for machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Files in the workspace that are to be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
}

impl Handoff {
    /// Refuses one whose texts or lists are too long. Who has to look for what it names asks this first.
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
    /// The profile that is to review it; a person where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<Profile>,
    /// Whose work it is, and who therefore may not review it: `worker:<profile>` or `person:<name>`.
    pub work_by: String,
}

/// Why a task cannot go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blocking {
    /// What it waits for.
    pub kind: BlockKind,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A question for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Whether a person has cancelled the task. No worker can say so.
    #[serde(skip)]
    pub is_cancel: bool,
}

/// Says who cancelled a task, and why.
pub(crate) fn cancelled_by(who: &str, why: Option<&str>) -> String {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("cancelled by {who}{why}")
}

/// What a person is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The question.
    pub text: String,
    /// The answers to choose from, up to [`Question::CHOICES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Whether an answer in words will do, too. Without choices it always does.
    #[serde(default)]
    pub free_text: bool,
    /// The class of the approval that a worker asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalClass>,
    /// With a request for an approval: what the tasks before have come to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Finding>,
}

/// What a task before has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The task.
    pub task: String,
    /// Its title.
    pub title: String,
    /// Its summary, or as much of it as a request has room for.
    pub summary: Option<String>,
}

impl Question {
    /// The most answers to choose from.
    pub const CHOICES: usize = 6;

    /// Returns the command by which a person answers it, the first choice as the example.
    pub fn command(&self, task: &TaskId) -> String {
        let reply = if self.choices.is_empty() { "'…'" } else { "1" };
        format!("supervisor answer {task} {reply}")
    }

    /// Finds the answer that a reply means: the number of a choice, a choice itself, or other words where they will do.
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
    /// Where a person moves a task.
    "destination"
    Destination {
        /// Back to triage.
        Triage => "triage",
        /// Back into the queue: `todo`, `scheduled` or `ready`, as its parents and its time allow.
        Queue => "queue",
    }
}

words! {
    /// What was decided, without its data.
    "verdict"
    VerdictKind {
        /// The task is done.
        Complete => "complete",
        /// It waits for a person or a task.
        Block => "block",
        /// It waits for a reviewer.
        RequestReview => "request_review",
        /// Its work is approved.
        Approve => "approve",
        /// Its work is not.
        RequestChanges => "request_changes",
        /// It goes out of sight.
        Archive => "archive",
        /// It goes back.
        Move => "move",
    }
}

impl VerdictKind {
    /// Returns whether this decision may follow an earlier one about the same run: only archiving may.
    pub(crate) fn may_replace(self, before: Option<VerdictKind>) -> bool {
        before.is_none_or(|before| before != VerdictKind::Archive && self == VerdictKind::Archive)
    }
}

/// What was decided about an open run. It takes effect when the run has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// The task is done.
    Complete(Handoff),
    /// It waits for a person or a task.
    Block(Blocking),
    /// It waits for a reviewer.
    RequestReview(ReviewRequest),
    /// A reviewer approves its work: it is done.
    Approve,
    /// A reviewer sends its work back.
    RequestChanges {
        /// What has to change.
        reason: String,
    },
    /// It goes out of sight, with what a verdict before it had handed over.
    Archive {
        /// The handoff of a completion that was recorded before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handoff: Option<Handoff>,
    },
    /// It goes back.
    Move {
        /// Where to.
        to: Destination,
    },
}

impl Verdict {
    /// Returns what was decided, without its data.
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
