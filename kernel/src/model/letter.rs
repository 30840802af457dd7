//! A message to people about a task: what it says, where it goes, and how far it has come.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::{EventId, LetterId, TaskId, Tenant};
use crate::model::words::words;

words! {
    /// What a message tells of.
    "kind of message"
    NoticeKind {
        /// The task is done.
        Completed => "completed",
        /// It waits for a person or another task.
        Blocked => "blocked",
        /// It asks a question.
        Question => "question",
        /// It needs an approval before it goes on.
        Approval => "approval",
        /// Its work waits for a person to review it.
        Review => "review",
        /// It has failed too often.
        GaveUp => "gave_up",
        /// A run of it failed; it is tried again.
        Crashed => "crashed",
        /// A run of it took too long; it is tried again.
        TimedOut => "timed_out",
        /// A run of it ended without a verdict; it is tried again.
        Unreported => "unreported",
        /// Messages of its tenant found the queue full and were left out.
        LeftOut => "left_out",
        /// Somebody tests the channel.
        Test => "test",
    }
}

impl NoticeKind {
    /// Returns whether a person has to act, so that the subscribers of the task's mission get it as well.
    pub fn needs_somebody(self) -> bool {
        matches!(
            self,
            NoticeKind::Blocked
                | NoticeKind::Question
                | NoticeKind::Approval
                | NoticeKind::Review
                | NoticeKind::GaveUp
        )
    }
}

words! {
    /// Where a message stands.
    "state of a message"
    LetterState {
        /// It is delivered in its turn.
        Waiting => "waiting",
        /// Its channel did not take it for too long; a person retries or drops it.
        Dead => "dead",
    }
}

/// What a message says. All of it is what workers and people wrote, cut and not escaped: each sink escapes it in its own way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// The title of the task.
    pub title: String,
    /// Who works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// The first line of the result, the reason or the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The answers to choose from; a reply may be their number, from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Address {
    /// The channel of the configuration.
    pub channel: String,
    /// The chat on it; empty for the one that the channel names.
    pub chat_id: String,
    /// The thread in the chat; empty where there is none.
    pub thread_id: String,
}

/// A message of the outbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Letter {
    /// Its number, greater than those before it.
    pub id: LetterId,
    /// The task that it tells of.
    pub task_id: TaskId,
    /// The event that caused it.
    pub event_id: EventId,
    /// The tenant of the task.
    pub tenant: Option<Tenant>,
    /// Where it goes.
    #[serde(flatten)]
    pub address: Address,
    /// What it tells of.
    pub kind: NoticeKind,
    /// What it says.
    pub notice: Notice,
    /// How many events it stands for.
    pub events: u32,
    /// Where it stands.
    pub state: LetterState,
    /// The first of the messages that are sent with it as one digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<LetterId>,
    /// How often its channel did not take it.
    pub attempts: u32,
    /// When it is tried next.
    pub due_at: Timestamp,
    /// Since when its channel does not take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// Why not, the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When it was written.
    pub created_at: Timestamp,
}

/// The messages of one tenant to one address, which are delivered one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Where they go.
    pub address: Address,
    /// Whose they are.
    pub tenant: Option<Tenant>,
    /// When the first of them is tried.
    pub due_at: Timestamp,
    /// How many wait.
    pub waiting: u32,
}

/// What waits to be delivered.
pub type Heads = Vec<Crowd>;

/// Which messages are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Letters {
    /// Only this one.
    pub id: Option<LetterId>,
    /// Only those to this channel.
    pub channel: Option<String>,
    /// Only those in this state.
    pub state: Option<LetterState>,
    /// Only those of this tenant.
    pub tenant: Option<Tenant>,
    /// At most this number, the oldest first.
    pub limit: u32,
}

/// What the outbox has for one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mail {
    /// The channel.
    pub channel: String,
    /// Messages that wait.
    pub waiting: u32,
    /// Messages that are dead.
    pub dead: u32,
    /// Since when the channel does not take the oldest of those that wait or are dead.
    pub failing_since: Option<Timestamp>,
    /// Why not, the last time.
    pub last_error: Option<String>,
}

/// So long a channel takes nothing before that is a trouble to be looked at.
const TROUBLE: Duration = Duration::from_mins(30);

impl Mail {
    /// Returns whether the channel has not taken a message, also one that is tried again soon.
    pub fn fails(&self) -> bool {
        self.dead > 0 || self.failing_since.is_some()
    }

    /// Returns whether somebody has to look at the channel: messages to it are dead, or it takes nothing for long.
    pub fn is_in_trouble(&self, now: Timestamp) -> bool {
        self.dead > 0 || self.failing_since.is_some_and(|since| since <= Self::trouble_since(now))
    }

    /// Returns since when a channel has taken nothing that is in trouble now.
    pub(crate) fn trouble_since(now: Timestamp) -> Timestamp {
        now.before(TROUBLE)
    }
}
