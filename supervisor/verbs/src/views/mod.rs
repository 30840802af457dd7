//! Parts of requests and replies that many verbs share: parsers, pages, and text for a terminal.

pub(crate) mod cursor;
pub(crate) mod end_text;
pub(crate) mod evidence;
pub(crate) mod list_or_one;
pub(crate) mod messages;
pub(crate) mod pages;
pub(crate) mod parse;
pub(crate) mod time_limit;
pub(crate) mod usage_text;
