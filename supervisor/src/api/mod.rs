//! The verbs over HTTP: identifies callers, dispatches verbs, and limits what callers can use.
//!
//! The same router serves the daemon's sockets and, without a daemon, the command line in its own process.

mod ask;
mod call;
mod confined;
mod doors;
mod flag;
#[cfg(test)]
mod hang_up_tests;
mod identity;
mod in_process;
mod members;
mod once;
mod policy_choice;
mod router;
mod socket;
mod streams;
mod work;

pub(crate) use ask::{Answered, Ask, Given, Id, Whole, answered, mount_exchange, mount_verb, written};
pub(crate) use call::{ANSWERED, Audience, Call, Effect, Entry, HangUp, OnBoard, Parcel, Scope, Tool, Verb};
pub(crate) use confined::{confine_to, not_for_members, require_own};
pub(crate) use doors::{
    Bell, Doorway, Listeners, Pass, RunDoors, Sockets, Streamed, WorkersRuntime, attend_browsers,
    raise_descriptors,
};
pub(crate) use flag::flag;
pub(crate) use identity::{
    BOARD_HEADER, Concern, KEY_HEADER, OperatorKey, Peer, REQUEST_HEADER, hash_token, person,
};
pub(crate) use in_process::{Asked, Inside, answer as in_process};
pub(crate) use router::{Beside, Messages, OwnDoor, Routes, Surface, front};
pub(crate) use socket::{Socket, Switch, Switching};
pub(crate) use streams::OpenStream;
pub(crate) use work::{blocking, to_its_end};
