//! Runs plugins, one process per call, and carries out the requests of their replies.
//!
//! ```text
//! log of the board ──cursor──► delivery ──► call ──► program, confined ──reply──► requests ──► verbs
//! ```
//!
//! * A call is a process of its own: it gets one JSON object, replies with one, and has a time limit. If it hangs,
//!   floods, dies or leaves processes behind, only that call fails.
//! * Events are given at least once and in order, after their commit. The queue of a plugin is the log itself; the
//!   board stores its position. A failing plugin waits longer each time, and is paused in the end.
//! * A plugin gets no events that plugins caused, so that they cannot call each other in a loop.
//!
//! See decision 0164.

mod calls;
mod check;
mod delivery_worker;
mod install;
mod prompt;
mod protocol;
mod requested_call;
mod requests;
mod sink;
mod state;
mod users;

pub use calls::Calls;
pub use check::{CheckedPlugin, check};
pub use delivery_worker::deliver;
pub use install::{Staged, uninstall};
pub use requested_call::{CallContext, CallRequest, PluginReply};
