//! Requests that clients send beside those of their users.

pub(crate) mod markdown;
pub(crate) mod names;
pub(crate) mod note_tool_call;
pub(crate) mod resolve;
pub(crate) mod tools;
