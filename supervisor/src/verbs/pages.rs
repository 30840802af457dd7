//! Verbs that answer a page at a time: no reply has more rows, or many more bytes, than a page. A command line that asks for
//! all of it puts the pages together.

use kernel::limits::REPLY_ROWS;

use crate::command::Command;
use crate::failure::Failure;
use crate::terminal::Screen;

/// A verb with pages. Where no page is asked for, its reply is the rows alone, as scripts of the established board expect
/// them, but for more rows than a page has: then it is the first page.
pub(crate) trait Pages: Command {
    type Row;

    /// Whether the caller wants to know where the next page starts.
    fn asks_for_pages(&self) -> bool;

    /// Asks for a page of at most `limit` rows from a cursor on.
    fn part(self, limit: Option<u32>, cursor: Option<String>) -> Self;

    /// How many rows are wanted; all where it says nothing.
    fn limit(&self) -> Option<u32>;

    /// The rows of a reply, and the cursor of the next page.
    fn split(reply: Self::Reply) -> (Vec<Self::Row>, Option<String>);

    fn joined(rows: Vec<Self::Row>, next: Option<String>) -> Self::Reply;

    /// Rows alone.
    fn whole(rows: Vec<Self::Row>) -> Self::Reply;
}

/// How much of a list a caller wants, and in which form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pages: bool,
    rows: usize,
}

impl Wanted {
    /// What a request says.
    pub(super) fn by<V: Pages>(verb: &V) -> Self {
        let rows = verb.limit().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        Wanted { pages: verb.asks_for_pages(), rows }
    }

    /// The reply with these rows, and the cursor of the next ones. Where more was wanted than a page has it is a page: rows
    /// alone would look like all of them.
    pub(super) fn reply<V: Pages>(self, rows: Vec<V::Row>, next: Option<String>) -> V::Reply {
        let is_cut = next.is_some() && rows.len() < self.rows;
        if self.pages || is_cut { V::joined(rows, next) } else { V::whole(rows) }
    }
}

/// How many rows a page has.
pub(super) fn limit(wanted: Option<u32>) -> Result<u32, Failure> {
    match wanted {
        Some(0) => {
            Err(Failure::usage("a limit of 0 would list nothing").hint("leave the limit out to see all"))
        }
        wanted => Ok(wanted.unwrap_or(REPLY_ROWS).min(REPLY_ROWS)),
    }
}

/// Tells a person that there is more.
pub(super) fn show_next(next: Option<&str>, screen: &mut Screen) {
    if let Some(next) = next {
        screen.line(format!("There are more: repeat the command with --cursor {next}"));
    }
}
