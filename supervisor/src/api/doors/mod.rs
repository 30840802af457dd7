//! The daemon's doors: the operator's socket, the workers' socket, and a loopback port where sockets cannot be granted.
//!
//! What comes through them is hostile until it is known:
//!
//! 1. [`crowd`]: connections are bounded, in all and for each peer. Over a bound the oldest one that has not said who it
//!    is gives way, so nobody can lock others out by holding connections open. Who shows a token is counted with its run.
//! 2. [`slow`] and [`pace`]: head, body and reply each have a time limit; whoever is slower is cut off.
//! 3. [`gate`]: requests at once, requests a second, uploads and unread bytes are bounded for each run and tenant.
//! 4. [`outgoing`]: a reply counts against its run until it is read.
//!
//! Workers are served by a runtime of their own ([`runtime`]), so whatever they do leaves the operator its threads.

mod account;
mod crowd;
mod gate;
mod intake;
mod listen;
mod loopback;
mod outgoing;
mod pace;
mod runtime;
mod serve;
mod slow;
mod whose;

pub(super) use crowd::{Bound, Busy, Seat};
pub(super) use gate::Gate;
pub(crate) use gate::Pass;
pub(super) use intake::Intake;
pub(crate) use listen::{Listeners, Sockets};
pub(super) use outgoing::Outgoing;
pub(crate) use outgoing::Streamed;
pub(crate) use runtime::{WorkersRuntime, raise_descriptors};
