//! The verbs over HTTP: identifies callers, dispatches verbs, and limits what callers can use.
//!
//! The same router serves the daemon's sockets and, without a daemon, the command line in its own process.

mod ask;
mod call;
pub mod command;
mod confined;
mod flag;
mod identity;
mod in_process;
mod listeners;
mod members;
mod once;
mod policy_choice;
mod router;
mod socket;
mod streams;
mod work;

pub use ask::{
    Ask, Id, JsonBody, WholeRequest, WholeResponse, mount_exchange, mount_verb, whole_response, written,
};
pub use call::{AnyReply, AnyVerb, Typed, Unfit, Working};
pub use call::{
    Audience, Call, Effect, HangUp, OnBoard, REPLY_TIME, Scope, Tool, Verb, VerbEntry, VerbRequest,
};
pub use confined::{confine_to, not_for_members, require_own};
pub use flag::flag;
pub use identity::{
    BOARD_HEADER, KEY_HEADER, OperatorKey, Peer, PluginScope, REQUEST_HEADER, hash_token, person,
};
pub use in_process::{InProcessRouter, PluginRequest, answer as in_process};
pub use listeners::{
    ListenerContext, Listeners, RequestPermit, RunListeners, SelfProbe, Sockets, Streamed, WorkersRuntime,
    raise_descriptors, serve_browsers,
};
pub use router::{BackgroundWork, Messages, OwnListener, Routes, Surface, api_router};
pub use socket::{Socket, Switch, Switching};
pub use streams::OpenStream;
pub use work::{blocking, to_its_end};
