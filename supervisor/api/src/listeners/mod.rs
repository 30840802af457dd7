//! Listeners of the daemon: the operator's socket, a socket for each run, a loopback port on hosts that cannot grant
//! single sockets, the members' socket, and the dashboard's port.
//!
//! Their input is hostile until the caller is identified:
//!
//! 1. [`run_listeners`]: each run has a socket of its own, which is not read while the run exceeds its limits
//!    ([`run_listener`]).
//! 2. [`connection_table`]: connections are limited, in all and for each peer. Beyond a limit the oldest connection of an
//!    unidentified caller is evicted, so that no caller can lock out others by holding connections open. A caller
//!    with a token is counted with its run.
//! 3. [`timed_stream`] and [`transfer_rate`]: head, body and reply each have a time limit; a slower connection is cut off.
//! 4. [`request_admission`]: concurrent requests, requests per second, uploads and unread bytes are limited for each run and
//!    tenant.
//! 5. [`outgoing_body`]: a reply counts for its run until it is read.
//!
//! Workers are served by runtimes of their own ([`runtime`]), so they cannot take the operator's threads.
//!
//! See decision 0019.

mod bind;
mod browsers;
mod connection_limits;
mod connection_table;
mod connections;
mod incoming_body;
mod listen;
mod origin;
mod outgoing_body;
mod request_admission;
mod run_listener;
mod run_listeners;
mod runtime;
mod self_probe;
mod serve;
mod stream;
mod timed_stream;
mod transfer_rate;
mod usage;
mod usage_table;

pub use browsers::serve_browsers;
pub(super) use connection_limits::ConnectionLimit;
pub(super) use connection_table::{Busy, ConnectionPermit};
pub(super) use incoming_body::IncomingBody;
pub use listen::{Listeners, Sockets};
pub(super) use outgoing_body::OutgoingBody;
pub use outgoing_body::Streamed;
pub(super) use request_admission::RequestAdmission;
pub use request_admission::RequestPermit;
pub(super) use request_admission::Reserved;
pub(crate) use request_admission::VerbPermits;
pub use run_listeners::RunListeners;
pub use runtime::{WorkersRuntime, raise_descriptors};
pub use self_probe::SelfProbe;
pub(crate) use serve::ApiRouter;
pub use serve::ListenerContext;
