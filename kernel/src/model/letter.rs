//! Messages to people about a task: content, address and state of delivery.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::{EventId, LetterId, TaskId, Tenant};
use crate::model::words::words;

words! {
    /// Subject of a message.
    "kind of message"
    NoticeKind {
        /// The task is done.
        Completed => "completed",
        /// The task waits for a person or another task.
        Blocked => "blocked",
        /// The task asks a question.
        Question => "question",
        /// The task needs an approval before it goes on.
        Approval => "approval",
        /// The work waits for a person's review.
        Review => "review",
        /// The task has failed too often.
        GaveUp => "gave_up",
        /// A run failed; the task is tried again.
        Crashed => "crashed",
        /// A run took too long; the task is tried again.
        TimedOut => "timed_out",
        /// A run ended without a verdict; the task is tried again.
        Unreported => "unreported",
        /// The queue was full, and messages of the tenant were left out.
        LeftOut => "left_out",
        /// A person tests the channel.
        Test => "test",
    }
}

impl NoticeKind {
    /// Returns true if a person has to act, so that the subscribers of the task's mission get the message as well.
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
    /// State of a message.
    "state of a message"
    LetterState {
        /// The message is delivered in its turn.
        Waiting => "waiting",
        /// The channel has refused the message for too long; a person retries or drops it.
        Dead => "dead",
    }
}

/// Content of a message. All of it comes from workers and people, cut to size but not escaped: each sink escapes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// First line of the result, the reason or the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Answers to choose from. A reply may be the number of an answer, from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// Recipient of a message: a channel, and a chat and thread on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Address {
    /// Name of the channel in the configuration.
    pub channel: String,
    /// Chat on the channel; empty for the chat that the channel itself names.
    pub chat_id: String,
    /// Thread in the chat; empty for none.
    pub thread_id: String,
}

/// Message of the outbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Letter {
    /// Number of the message, greater than the numbers of earlier messages.
    pub id: LetterId,
    /// Task that the message is about.
    pub task_id: TaskId,
    /// Event that caused the message.
    pub event_id: EventId,
    pub tenant: Option<Tenant>,
    #[serde(flatten)]
    pub address: Address,
    /// Subject of the message.
    pub kind: NoticeKind,
    /// Content of the message.
    pub notice: Notice,
    /// Number of events that the message stands for.
    pub events: u32,
    pub state: LetterState,
    /// First message of the digest that this message is sent with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<LetterId>,
    /// Number of failed deliveries.
    pub attempts: u32,
    /// Time of the next try.
    pub due_at: Timestamp,
    /// Time since which the channel has refused the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Time at which the message was written.
    pub created_at: Timestamp,
}

/// Messages of one tenant to one address, which are delivered one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryQueue {
    pub address: Address,
    pub tenant: Option<Tenant>,
    /// Time at which the first message is tried.
    pub due_at: Timestamp,
    /// Number of waiting messages.
    pub waiting: u32,
}

/// Selection of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Letters {
    /// Only the message with this id.
    pub id: Option<LetterId>,
    /// Only messages to this channel.
    pub channel: Option<String>,
    /// Only messages in this state.
    pub state: Option<LetterState>,
    /// Only messages of this tenant.
    pub tenant: Option<Tenant>,
    /// Largest number of messages, the oldest first.
    pub limit: u32,
}

/// State of the outbox for one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mail {
    pub channel: String,
    /// Number of messages that wait.
    pub waiting: u32,
    /// Number of messages that are dead.
    pub dead: u32,
    /// Time since which the channel has refused its oldest waiting or dead message.
    pub failing_since: Option<Timestamp>,
    pub last_error: Option<String>,
}

/// Time without a delivery after which a channel needs an operator's attention.
const TROUBLE: Duration = Duration::from_mins(30);

impl Mail {
    /// Returns true if the channel has refused a message, even a message that is tried again soon.
    pub fn fails(&self) -> bool {
        self.dead > 0 || self.failing_since.is_some()
    }

    /// Returns true if the channel needs an operator: messages to it are dead, or it has accepted nothing for 30
    /// minutes.
    pub fn is_in_trouble(&self, now: Timestamp) -> bool {
        self.dead > 0 || self.failing_since.is_some_and(|since| since <= Self::trouble_since(now))
    }

    /// Returns the latest start of failure that counts as trouble now.
    pub(crate) fn trouble_since(now: Timestamp) -> Timestamp {
        now.before(TROUBLE)
    }
}
