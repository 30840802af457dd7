//! Messages to the agent of a run: the files that the daemon puts into `inbox`, and the record `messages` of the shim.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use super::VERSION;

/// Protocol in which the program of a run takes messages while it works. Its prompt is the first message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Wire format.
    pub form: Form,
    /// Id of the first message, a UUID.
    pub id: String,
    /// Session of the conversation, if the form names it and the command does not.
    pub resumed: Option<String>,
}

impl Conversation {
    /// Signals that the relay of a conversation, which is the run's first process, passes on to the agent. Any other
    /// signal reaches the relay alone.
    pub const SIGNALS: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
}

/// Wire formats in which programs take messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `claude -p --input-format stream-json --output-format stream-json --replay-user-messages`.
    StreamJson,
    /// `codex app-server`.
    AppServer,
    /// The Agent Client Protocol: `gemini --experimental-acp`, `opencode acp`.
    Acp,
}

/// Message to the agent, in the file `inbox/<number>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMessage {
    /// Number among the messages of the run, from 1 on without a gap.
    pub number: u32,
    /// Id, a UUID, by which an agent confirms the message.
    pub id: String,
    /// Text that the agent reads.
    pub text: String,
}

/// Delivery state of a message in the processes of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// The whole message was written to the input of the agent.
    Written,
    /// The agent has confirmed the message.
    Confirmed,
    /// The agent has ended without having read the message.
    Unread,
    /// The conversation was over when the message came.
    Closed,
    /// The agent has refused the message.
    Refused,
}

impl Receipt {
    /// Returns true if this state may follow the known state of a message.
    pub(crate) fn follows(self, known: Option<Receipt>) -> bool {
        matches!(
            (known, self),
            (None, _) | (Some(Receipt::Written), Receipt::Confirmed | Receipt::Unread | Receipt::Refused)
        )
    }
}

/// Report of the relay to its shim, one per line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Received {
    pub(crate) number: u32,
    pub(crate) receipt: Receipt,
}

/// Record `messages`: the receipt of each message that the shim has passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesRecord {
    /// Version of the run directory that its writer knows.
    pub version: u32,
    /// Receipts by the number of the message. A message without a receipt has not reached the agent.
    pub receipts: BTreeMap<u32, Receipt>,
}

impl Default for MessagesRecord {
    fn default() -> Self {
        MessagesRecord { version: VERSION, receipts: BTreeMap::new() }
    }
}
