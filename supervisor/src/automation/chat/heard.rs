//! A message as a bridge hands it on.

use kernel::Address;
use tokio::sync::oneshot;

/// What a sender has said. All of it is the sender's, and hostile.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// The service's own id of the message, the same when it is sent again.
    pub(crate) id: String,
    /// The service's id of who has sent it.
    pub(crate) sender: String,
    pub(crate) chat: String,
    /// The thread; empty where there is none.
    pub(crate) thread: String,
    pub(crate) text: String,
    /// The message of this bridge that it is a reply to.
    pub(crate) replied: Option<String>,
    /// Whether nobody else is in the chat.
    pub(crate) is_direct: bool,
}

impl Heard {
    /// Where it was said.
    pub(crate) fn address(&self, channel: &str) -> Address {
        Address { channel: channel.to_owned(), chat_id: self.chat.clone(), thread_id: self.thread.clone() }
    }
}

/// A message that somebody waits for the reply to.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) heard: Heard,
    /// Takes the reply; none where the message is not for the chat.
    pub(crate) reply: oneshot::Sender<Option<String>>,
}
