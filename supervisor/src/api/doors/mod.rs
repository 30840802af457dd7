//! The daemon's doors: the operator's socket, a socket for each run, a loopback port where sockets cannot be granted, and that of the dashboard.
//!
//! What comes through them is hostile until it is known:
//!
//! 1. [`run_doors`]: each run has a door of its own, which is not looked at while the run has had its share ([`run_door`]).
//! 2. [`crowd`]: connections are bounded, in all and for each peer. Over a bound the oldest one that has not said who it
//!    is gives way, so nobody can lock others out by holding connections open. Who shows a token is counted with its run.
//! 3. [`slow`] and [`pace`]: head, body and reply each have a time limit; a slower connection is cut off.
//! 4. [`gate`]: requests at once, requests a second, uploads and unread bytes are bounded for each run and tenant.
//! 5. [`outgoing`]: a reply counts against its run until it is read.
//!
//! Workers are served by a runtime of their own ([`runtime`]), so whatever they do leaves the operator its threads.

mod account;
mod accounts;
mod bell;
mod bind;
mod bounds;
mod browsers;
mod crowd;
mod gate;
mod intake;
mod listen;
mod members;
mod outgoing;
mod pace;
mod run_door;
mod run_doors;
mod runtime;
mod serve;
mod slow;
mod stream;
mod whose;

pub(super) use accounts::REST;
pub(crate) use bell::Bell;
pub(super) use bounds::Bound;
pub(crate) use browsers::attend_browsers;
pub(super) use crowd::{Busy, Seat};
pub(super) use gate::Gate;
pub(super) use gate::Reserved;
pub(crate) use gate::{Pass, Turn};
pub(super) use intake::Intake;
pub(crate) use listen::{Listeners, Sockets};
pub(super) use outgoing::Outgoing;
pub(crate) use outgoing::Streamed;
pub(crate) use run_doors::RunDoors;
pub(crate) use runtime::{WorkersRuntime, raise_descriptors};
pub(crate) use serve::{Doorway, Front};
