//! Limits on the size and the number of the objects that callers send, and on the size of replies.
//!
//! The store stops reading at the limit of a reply, so an omitted row is never in memory. A page always has its first
//! row, because paging would otherwise never end. A list that does not fit into one reply becomes a page, because an
//! array of its first rows would look like the whole list.

use serde_json::Value;

use crate::model::actor::{Actor, ActorKind};
use crate::model::error::Error;

const KIB: usize = 1024;
/// Title, in characters.
pub const TITLE: usize = 500;
/// Body, in bytes.
pub const BODY: usize = 1024 * KIB;
/// Comment, in bytes.
pub const COMMENT: usize = 256 * KIB;
/// Summary, result or reason, in bytes.
pub const SUMMARY: usize = 64 * KIB;
/// Metadata, in bytes of JSON.
pub const METADATA: usize = 64 * KIB;
/// Attached file, in bytes.
pub const ATTACHMENT: u64 = 25 * 1024 * 1024;
/// Number of attached files of one task.
pub const ATTACHMENTS: usize = 1000;
/// Number of messages to one run.
pub const MESSAGES: u32 = 1000;
/// Number of files that a run may declare as parts of its result.
pub const ARTIFACTS: usize = 100;
/// Number of turns toward a goal, or of consecutive failed checks, after which a person is asked.
pub const TURNS: u32 = 1000;
/// Number of turns or failed checks for a task that a worker creates.
pub const TURNS_BY_WORKER: u32 = 20;
/// Number of created tasks that a worker may declare.
pub const CARDS: usize = 100;
/// Number of parents of one task.
pub const PARENTS: usize = 1000;
/// Number of pools that a task may name.
pub const POOLS: usize = 16;
/// Number of children of one task. A single transaction promotes all of them.
pub const CHILDREN: usize = 10_000;
/// Number of rows of one kind in one reply: comments, runs, tasks. Events are shorter, and have another limit.
pub const REPLY_ROWS: u32 = 1000;
/// Largest number that a card shows: counting of comments, parents, children and runs stops here.
pub const COUNTED: u32 = 1000;
/// Bytes of the texts of one kind in one reply to a worker: the comments of a thread, the runs of a task.
pub const REPLY_TO_WORKER: usize = 1024 * KIB;
/// Bytes of the texts of one kind in one reply to a person.
pub const REPLY_TO_PERSON: usize = 16 * 1024 * KIB;
/// Other short text, in bytes.
pub const WORD: usize = 4 * KIB;

/// Remaining space for texts in a reply, in bytes.
#[derive(Debug)]
pub(crate) struct ReplyCapacity(usize);

impl ReplyCapacity {
    /// Returns the space in a reply to a caller.
    pub(crate) fn for_actor(actor: &Actor) -> Self {
        Self(match actor.kind {
            ActorKind::Worker => REPLY_TO_WORKER,
            ActorKind::Person | ActorKind::System => REPLY_TO_PERSON,
        })
    }

    /// Creates a space of this number of bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Returns the space for the sources of a context, which is far more than the context itself may have.
    pub(crate) fn of_context() -> Self {
        Self(4 * REPLY_TO_WORKER)
    }

    /// Takes the space of a text and returns true if it fits. The first text that does not fit takes all remaining space,
    /// so that every older text is left out too.
    pub(crate) fn take(&mut self, size: usize) -> bool {
        let fits = size <= self.0;
        self.0 = if fits { self.0 - size } else { 0 };
        fits
    }
}

/// Returns the placeholder for a text that does not fit into a reply.
pub(crate) fn left_out(size: usize) -> String {
    format!("[left out: {size} bytes; newer texts fill this reply]")
}

/// Refuses a blank text. `hint` names the text to send instead.
pub(crate) fn filled(field: &'static str, text: &str, hint: &str) -> Result<(), Error> {
    if text.trim().is_empty() { Err(Error::invalid(field, "it is empty", hint)) } else { Ok(()) }
}

pub(crate) fn title(text: &str) -> Result<(), Error> {
    let length = text.chars().count();
    filled("title", text, "say in one line what is to be done")?;
    if length > TITLE {
        return Err(Error::invalid(
            "title",
            format!("it has {length} characters, the limit is {TITLE}"),
            "put the details into the body",
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(Error::invalid(
            "title",
            "it has control characters or line breaks",
            "use one line; put the rest into the body",
        ));
    }
    Ok(())
}

pub(crate) fn bytes(field: &'static str, text: &str, limit: usize) -> Result<(), Error> {
    if text.len() > limit {
        return Err(Error::invalid(
            field,
            format!("it has {} bytes, the limit is {limit}", text.len()),
            "attach it as a file, or put it into the workspace and name its path",
        ));
    }
    if text.contains('\0') {
        return Err(Error::invalid(field, "it has a NUL character", "send text"));
    }
    Ok(())
}

pub(crate) fn maybe(field: &'static str, text: Option<&str>, limit: usize) -> Result<(), Error> {
    text.map_or(Ok(()), |text| bytes(field, text, limit))
}

/// Refuses a text that is longer than `limit` bytes, or that is not one line, because headers and lists show it.
pub(crate) fn line(field: &'static str, text: &str, limit: usize) -> Result<(), Error> {
    bytes(field, text, limit)?;
    if text.chars().any(char::is_control) {
        let why = "it has control characters or line breaks";
        return Err(Error::invalid(field, why, "use one line of plain text"));
    }
    Ok(())
}

pub(crate) fn metadata(value: Option<&Value>) -> Result<(), Error> {
    match value {
        None => Ok(()),
        Some(Value::Object(_)) => maybe("metadata", value.map(Value::to_string).as_deref(), METADATA),
        Some(_) => Err(Error::invalid("metadata", "it is not a JSON object", "send an object: {\"key\": …}")),
    }
}
