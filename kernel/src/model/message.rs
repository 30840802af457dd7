//! Messages to the agent of a live run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::clock::Timestamp;
use crate::model::id::{CommentId, RunId, TaskId};
use crate::model::words::words;

words! {
    /// State of a message, which only moves forward.
    "state of a message"
    MessageState {
        /// The message is on the board and not yet with the agent.
        Queued => "queued",
        /// The message is in the agent's input, and the agent has not confirmed it. Some agents confirm nothing.
        Written => "written",
        /// The agent has confirmed the message.
        Delivered => "delivered",
        /// The agent has not received the message and never will.
        NotDelivered => "not_delivered",
    }
}

/// Message to the agent of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    pub run_id: RunId,
    /// Number among the messages to the run, from 1 on.
    pub number: u32,
    pub task_id: TaskId,
    /// Sender of the message.
    pub author: String,
    /// Text of the message.
    pub body: String,
    /// Comment that carries the message; none for a message that was sent alone.
    pub comment_id: Option<CommentId>,
    pub state: MessageState,
    /// Reason why the message was not delivered.
    pub reason: Option<String>,
    /// Time of sending.
    pub created_at: Timestamp,
    /// Time of the last change of state.
    pub changed_at: Timestamp,
}

/// Change of a message's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageNews {
    /// Number among the messages to the run.
    pub number: u32,
    /// New state of the message.
    pub state: MessageState,
    /// Reason why the message was not delivered, if that is its state.
    pub reason: Option<String>,
}
