//! The verbs over HTTP: identifies callers, dispatches verbs, and limits what callers can use.
//!
//! The same router serves the daemon's sockets and, without a daemon, the command line in its own process.

mod ask;
mod call;
pub mod command;
mod confined;
mod listeners;
mod flag;
mod identity;
mod in_process;
mod members;
mod once;
mod policy_choice;
mod router;
mod socket;
mod streams;
mod work;

pub use ask::{WholeResponse, Ask, JsonBody, Id, WholeRequest, whole_response, mount_exchange, mount_verb, written};
pub use call::{REPLY_TIME, Audience, Call, Effect, VerbEntry, HangUp, OnBoard, VerbRequest, Scope, Tool, Verb};
pub use confined::{confine_to, not_for_members, require_own};
pub use listeners::{
    SelfProbe, ListenerContext, Listeners, RequestPermit, RunListeners, Sockets, Streamed, WorkersRuntime, serve_browsers,
    raise_descriptors,
};
pub use flag::flag;
pub use identity::{
    BOARD_HEADER, PluginScope, KEY_HEADER, OperatorKey, Peer, REQUEST_HEADER, hash_token, person,
};
pub use in_process::{PluginRequest, InProcessRouter, answer as in_process};
pub use router::{BackgroundWork, Messages, OwnListener, Routes, Surface, api_router};
pub use socket::{Socket, Switch, Switching};
pub use streams::OpenStream;
pub use work::{blocking, to_its_end};
