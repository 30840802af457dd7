//! A subscription of a chat to a task, with its position in the events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::{EventId, TaskId};

/// What tells subscriptions apart: a task has one for each thread of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubscriptionKey {
    /// The task.
    pub task_id: TaskId,
    /// The platform, such as `telegram`.
    pub platform: String,
    /// The chat on it.
    pub chat_id: String,
    /// The thread in the chat; empty where there is none.
    pub thread_id: String,
}

/// A chat subscribed to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subscription {
    /// What tells it apart.
    #[serde(flatten)]
    pub key: SubscriptionKey,
    /// The user on the platform who asked for it.
    pub user_id: Option<String>,
    /// The profile in whose name it is sent.
    pub notifier_profile: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last event delivered to it; zero if there is none.
    pub last_event_id: EventId,
}
