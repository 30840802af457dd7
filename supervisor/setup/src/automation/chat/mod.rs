//! Chats as the files `chat.d/*.toml` define them, one file a chat, and the state of their bridges. The bridges
//! themselves are in `chat/`, above the verbs that they call.

mod desk;
mod file;
mod heard;

pub use self::desk::{Chatroom, Desk, Known, Line, Repeat};
pub use self::file::{ChatFile, Chats, May, Sender};
pub use self::heard::{Heard, Posted};
