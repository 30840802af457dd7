//! What plugins do: their programs are run, one process a call, and what they ask for is carried out.
//!
//! ```text
//! log of the board ──cursor──► courier ──► call ──► program, confined ──reply──► requests ──► verbs
//! ```
//!
//! * A call is a process of its own: it gets one JSON object, answers with one, and has its time. One that hangs, floods, dies or leaves
//!   processes behind is a call that failed, and nothing else.
//! * Events are given at least once and in order, after their commit. The queue of a plugin is the log itself; the board keeps how far it
//!   has come. One that fails waits longer each time, and is paused in the end.
//! * A plugin never gets events that plugins caused, so that none of them calls itself.

mod asked;
mod calls;
mod check;
mod courier;
mod install;
mod prompt;
mod protocol;
mod requests;
mod sink;
mod state;
mod users;

pub(crate) use asked::{Answer, Asking};
pub(crate) use calls::Calls;
pub(crate) use check::{Checked, check};
pub(crate) use courier::deliver;
pub(crate) use install::{Staged, uninstall};
