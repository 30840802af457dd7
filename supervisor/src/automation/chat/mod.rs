//! Chats: what the files of `chat.d/*.toml` define, one file a chat, and how their bridges stand. The bridges are a room of their own
//! (`chat/`), above the verbs that they call.

mod desk;
mod file;
mod heard;

pub(crate) use self::desk::{Chatroom, Desk, Known, Line, Repeat};
pub(crate) use self::file::{ChatFile, Chats, May, Sender};
pub(crate) use self::heard::{Heard, Posted};
