//! Messages to the agent of a run: what the daemon puts into `inbox`, and what the shim records in `messages`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use super::VERSION;

/// Protocol in which the program of a run takes messages while it works. Its prompt is the first message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Wire format.
    pub form: Form,
    /// The name of the first message, a UUID.
    pub id: String,
    /// Session of the conversation, if the form names it and the command does not.
    pub resumed: Option<String>,
}

impl Conversation {
    /// Signals that the relay of a conversation, which is the run's first process, passes on to the agent. Any other
    /// signal reaches the relay alone.
    pub const SIGNALS: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
}

/// The forms in which programs take messages.
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

/// `inbox/<number>`: a message to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// Number among the messages of the run, from 1 on without a gap.
    pub number: u32,
    /// Its name, a UUID, by which an agent confirms it.
    pub id: String,
    /// The message, as the worker reads it.
    pub text: String,
}

/// Delivery state of a message in the processes of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// The message is in the agent's input, whole.
    Written,
    /// The agent has confirmed it.
    Confirmed,
    /// The agent has ended without having read it.
    Unread,
    /// The conversation was over when it came.
    Closed,
    /// The agent does not take it.
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

/// A line of the relay to its shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Received {
    pub(crate) number: u32,
    pub(crate) receipt: Receipt,
}

/// `messages`: the receipt of each message that the shim has passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesRecord {
    /// The version of the directory that its writer knows.
    pub version: u32,
    /// Receipts by the number of the message. A message without a receipt has not reached the agent.
    pub receipts: BTreeMap<u32, Receipt>,
}

impl Default for MessagesRecord {
    fn default() -> Self {
        MessagesRecord { version: VERSION, receipts: BTreeMap::new() }
    }
}
