//! The verbs over HTTP: who calls, which verb, what comes back.
//!
//! One router serves the daemon's sockets and, where no daemon runs, the command line in its own process.

mod ask;
mod call;
mod files;
mod identity;
mod in_process;
mod intake;
mod listen;
mod pace;
mod rest;
mod router;

pub(crate) use call::{Audience, Call, Effect, Parcel, Verb};
pub(crate) use identity::{BOARD_HEADER, KEY_HEADER, OperatorKey, REQUEST_HEADER, hash_token, hex, person};
pub(crate) use in_process::answer as in_process;
pub(crate) use listen::{Listeners, Sockets};
pub(crate) use router::{Routes, mount_verb, router};
