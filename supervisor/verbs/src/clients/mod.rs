//! Requests that programs send without an order of a person: names for completion, short ids, text as HTML, tools and their calls.

pub(crate) mod markdown;
pub(crate) mod names;
pub(crate) mod note_tool_call;
pub(crate) mod resolve;
pub(crate) mod tools;
