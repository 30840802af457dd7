//! The verbs over HTTP: identifies callers, dispatches verbs, and limits what callers can use.
//!
//! The same router serves the daemon's sockets and, without a daemon, the command line in its own process.

mod any;
mod ask;
mod call;
pub mod command;
mod confined;
mod doors;
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

pub use any::{AnyReply, AnyVerb, Typed, Unfit, Working};
pub use ask::{Answered, Ask, Given, Id, Whole, answered, mount_exchange, mount_verb, written};
pub use call::{ANSWERED, Audience, Call, Effect, Entry, HangUp, OnBoard, Parcel, Scope, Tool, Verb};
pub use confined::{confine_to, not_for_members, require_own};
pub use doors::{
    Bell, Doorway, Listeners, Pass, RunDoors, Sockets, Streamed, WorkersRuntime, attend_browsers,
    raise_descriptors,
};
pub use flag::flag;
pub use identity::{
    BOARD_HEADER, Concern, KEY_HEADER, OperatorKey, Peer, REQUEST_HEADER, hash_token, person,
};
pub use in_process::{Asked, Inside, answer as in_process};
pub use router::{Beside, Messages, OwnDoor, Routes, Surface, front};
pub use socket::{Socket, Switch, Switching};
pub use streams::OpenStream;
pub use work::{blocking, to_its_end};
