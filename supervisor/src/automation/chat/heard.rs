//! An incoming message, as a bridge passes it on.

use kernel::Address;
use tokio::sync::oneshot;

/// Message of a sender. All of it is the sender's text and hostile.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// Id of the message at the service, equal when the message is delivered again.
    pub(crate) id: String,
    /// Id of the sender at the service.
    pub(crate) sender: String,
    pub(crate) chat: String,
    /// Thread; empty if none.
    pub(crate) thread: String,
    pub(crate) text: String,
    /// Message of this bridge to which it replies.
    pub(crate) replied: Option<String>,
    /// True if the sender is alone with the bot.
    pub(crate) is_direct: bool,
}

impl Heard {
    /// Returns the address for replies.
    pub(crate) fn address(&self, channel: &str) -> Address {
        Address { channel: channel.to_owned(), chat_id: self.chat.clone(), thread_id: self.thread.clone() }
    }
}

/// Message whose poster waits for a reply.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) heard: Heard,
    /// Receives the reply; none if the message is not for the chat.
    pub(crate) reply: oneshot::Sender<Option<String>>,
}
