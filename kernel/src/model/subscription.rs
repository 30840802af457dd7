//! Subscriptions of chats to tasks, with their positions in the events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::{EventId, TaskId};

/// Key of a subscription. A task has at most one subscription for each thread of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubscriptionKey {
    pub task_id: TaskId,
    /// Platform, such as `telegram`.
    pub platform: String,
    pub chat_id: String,
    /// Thread in the chat; empty for none.
    pub thread_id: String,
}

/// Subscription of a chat to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subscription {
    #[serde(flatten)]
    pub key: SubscriptionKey,
    /// User on the platform who asked for it.
    pub user_id: Option<String>,
    /// Profile in whose name the messages are sent.
    pub notifier_profile: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Last event that was delivered; zero for none.
    pub last_event_id: EventId,
}
