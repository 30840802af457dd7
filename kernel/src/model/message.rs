//! A message to the agent of a live run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::{CommentId, RunId, TaskId};
use crate::model::words::words;

words! {
    /// What has become of a message. It never goes back.
    "state of a message"
    MessageState {
        /// It is on the board, and not with the agent.
        Queued => "queued",
        /// It is in the input of the agent, which has not confirmed it. An agent that confirms nothing leaves it so.
        Written => "written",
        /// The agent has confirmed it.
        Delivered => "delivered",
        /// The agent has not got it and will not.
        NotDelivered => "not_delivered",
    }
}

/// A message to the agent of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The run.
    pub run_id: RunId,
    /// Its number among the messages to that run, from 1 on.
    pub number: u32,
    /// The task of the run.
    pub task_id: TaskId,
    /// Who sends it.
    pub author: String,
    /// The text.
    pub body: String,
    /// The comment that it is; none where it was sent alone.
    pub comment_id: Option<CommentId>,
    /// What has become of it.
    pub state: MessageState,
    /// Why it was not delivered.
    pub reason: Option<String>,
    /// When it was sent.
    pub created_at: Timestamp,
    /// When its state was found.
    pub changed_at: Timestamp,
}

/// What is known of a message now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageNews {
    /// Its number among the messages to its run.
    pub number: u32,
    /// What has become of it.
    pub state: MessageState,
    /// Why it was not delivered, where it was not.
    pub reason: Option<String>,
}
