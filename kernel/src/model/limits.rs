//! How large what callers send may be.

use serde_json::Value;

use crate::model::actor::{Actor, ActorKind};
use crate::model::error::Error;

const KIB: usize = 1024;
/// A title, in characters.
pub const TITLE: usize = 500;
/// A body, in bytes.
pub const BODY: usize = 1024 * KIB;
/// A comment, in bytes.
pub const COMMENT: usize = 256 * KIB;
/// A summary, a result or a reason, in bytes.
pub const SUMMARY: usize = 64 * KIB;
/// Metadata, in bytes of JSON.
pub const METADATA: usize = 64 * KIB;
/// An attached file, in bytes.
pub const ATTACHMENT: u64 = 25 * 1024 * 1024;
/// The attached files of one task.
pub const ATTACHMENTS: usize = 1000;
/// The messages to one run.
pub const MESSAGES: u32 = 1000;
/// The files that a run may declare as parts of its result.
pub const ARTIFACTS: usize = 100;
/// The turns toward a goal, or the failed checks in a row, after which a person is asked.
pub const TURNS: u32 = 1000;
/// The same of a task that a worker makes.
pub const TURNS_BY_WORKER: u32 = 20;
/// The tasks that a worker may say that it has made.
pub const CARDS: usize = 100;
/// The parents of one task.
pub const PARENTS: usize = 1000;
/// The pools that a task may name.
pub const POOLS: usize = 16;
/// The children of one task: they are promoted in one transaction.
pub const CHILDREN: usize = 10_000;
/// The rows of one kind in one reply: comments, runs, tasks. Events are shorter, and have a limit of their own.
pub const REPLY_ROWS: u32 = 1000;
/// What is counted of a task for its card: comments, parents, children, runs.
pub const COUNTED: u32 = 1000;
/// The texts of one kind that a worker gets in one reply, in bytes: of a thread, of the runs of a task.
pub const REPLY_TO_WORKER: usize = 1024 * KIB;
/// The same for people.
pub const REPLY_TO_PERSON: usize = 16 * 1024 * KIB;
/// Any other short text, in bytes.
pub const WORD: usize = 4 * KIB;

/// How much of a reply is left for texts.
#[derive(Debug)]
pub(crate) struct Room(usize);

impl Room {
    /// The room in a reply to somebody.
    pub(crate) fn of(actor: &Actor) -> Self {
        Self(match actor.kind {
            ActorKind::Worker => REPLY_TO_WORKER,
            ActorKind::Person | ActorKind::System => REPLY_TO_PERSON,
        })
    }

    /// Room for this number of bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// The room for what a context is made from, far more than it shows.
    pub(crate) fn of_context() -> Self {
        Self(4 * REPLY_TO_WORKER)
    }

    /// Returns whether a text still fits. The first that does not takes what is left, so that all older ones are left out.
    pub(crate) fn take(&mut self, size: usize) -> bool {
        let fits = size <= self.0;
        self.0 = if fits { self.0 - size } else { 0 };
        fits
    }
}

/// What stands in place of a text that does not fit into a reply.
pub(crate) fn left_out(size: usize) -> String {
    format!("[left out: {size} bytes; newer texts fill this reply]")
}

/// Refuses a text of white space alone. `hint` is what to send instead.
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

pub(crate) fn metadata(value: Option<&Value>) -> Result<(), Error> {
    match value {
        None => Ok(()),
        Some(Value::Object(_)) => maybe("metadata", value.map(Value::to_string).as_deref(), METADATA),
        Some(_) => Err(Error::invalid("metadata", "it is not a JSON object", "send an object: {\"key\": …}")),
    }
}
