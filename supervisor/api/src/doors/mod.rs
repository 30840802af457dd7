//! Listeners of the daemon: the operator's socket, a socket for each run, a loopback port on hosts that cannot grant
//! single sockets, the members' socket, and the dashboard's port.
//!
//! Any process of the host can connect, so each step before the caller is identified is bounded:
//!
//! 1. [`run_doors`]: each run has a socket of its own, which is not read while the run exceeds its limits
//!    ([`run_door`]).
//! 2. [`crowd`]: connections are limited, in all and for each peer. Beyond a limit the oldest connection of an
//!    unidentified caller is evicted, so that no caller can lock out others by holding connections open. A caller
//!    with a token is counted with its run.
//! 3. [`slow`] and [`pace`]: head, body and reply each have a time limit; a slower connection is cut off.
//! 4. [`gate`]: concurrent requests, requests per second, uploads and unread bytes are limited for each run and
//!    tenant.
//! 5. [`outgoing`]: the bytes of a reply count for its run until the client has read them.
//!
//! Workers are served by runtimes of their own ([`runtime`]), so they cannot take the operator's threads.
//!
//! See decision 0019.

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

pub use bell::Bell;
pub(super) use bounds::Bound;
pub use browsers::attend_browsers;
pub(super) use crowd::{Busy, Seat};
pub(super) use gate::Gate;
pub use gate::Pass;
pub(super) use gate::Reserved;
pub(crate) use gate::Turn;
pub(super) use intake::Intake;
pub use listen::{Listeners, Sockets};
pub(super) use outgoing::Outgoing;
pub use outgoing::Streamed;
pub use run_doors::RunDoors;
pub use runtime::{WorkersRuntime, raise_descriptors};
pub use serve::Doorway;
pub(crate) use serve::Front;
