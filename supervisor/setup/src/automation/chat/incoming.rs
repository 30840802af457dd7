//! An incoming message, as a bridge passes it on.

use kernel::Address;
use tokio::sync::oneshot;

/// Message of a sender. All of it is the sender's text and hostile.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    /// Id of the message at the service, equal when the message is delivered again.
    pub id: String,
    /// Id of the sender at the service.
    pub sender: String,
    pub chat: String,
    /// Thread; empty if none.
    pub thread: String,
    pub text: String,
    /// Message of this bridge to which it replies.
    pub replied: Option<String>,
    /// True if the sender is alone with the bot.
    pub is_direct: bool,
}

impl IncomingMessage {
    /// Returns the address for replies.
    pub fn address(&self, channel: &str) -> Address {
        Address { channel: channel.to_owned(), chat_id: self.chat.clone(), thread_id: self.thread.clone() }
    }
}

/// Message whose poster waits for a reply.
#[derive(Debug)]
pub struct Posted {
    pub message: IncomingMessage,
    /// Receives the reply; none if the message is not for the chat.
    pub reply: oneshot::Sender<Option<String>>,
}
