//! Chats as the files `chat.d/*.toml` define them, one file a chat, and the state of their bridges. The bridges
//! themselves are in `chat/`, above the verbs that they call.

mod file;
mod incoming;
mod state;

pub use self::file::{ChatFile, Chats, May, Sender};
pub use self::incoming::{IncomingMessage, Posted};
pub use self::state::{ChatConnection, Chatroom, ChatsState, Remembered, Repeat};
