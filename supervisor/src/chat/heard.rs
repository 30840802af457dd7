//! A message as a bridge hands it on.

use kernel::Address;

/// What a sender has said. All of it is the sender's, and hostile.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// The service's own id of the message, the same when it is sent again.
    pub(super) id: String,
    /// The service's id of who has sent it.
    pub(super) sender: String,
    pub(super) chat: String,
    /// The thread; empty where there is none.
    pub(super) thread: String,
    pub(super) text: String,
    /// The message of this bridge that it is a reply to.
    pub(super) replied: Option<String>,
    /// Whether nobody else is in the chat.
    pub(super) is_direct: bool,
}

impl Heard {
    /// Where it was said.
    pub(super) fn address(&self, channel: &str) -> Address {
        Address { channel: channel.to_owned(), chat_id: self.chat.clone(), thread_id: self.thread.clone() }
    }
}
