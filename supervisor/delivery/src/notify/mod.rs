//! Delivers messages to people over the configured channels.
//!
//! ```text
//! event ──one transaction──► outbox of the board ──► deliver ──► sink ──► service
//! ```
//!
//! * At least once: a message is removed after its channel has accepted it. If a daemon is killed in between, the next
//!   one sends it again, with the same id.
//! * In order: of one tenant to one address, a message is sent once the one before it is delivered or dead.
//! * Each channel has at most one delivery in progress, and a limit per minute. The addresses of a channel take turns,
//!   so that tenants do not wait for each other.
//! * Only a new message, a reload and the time of the next try wake an idle daemon.
//!
//! See decision 0146.

mod batch;
mod channel;
mod chat_api;
mod deliver;
mod form;
mod http;
mod plan;
mod sinks;
mod socket;
mod step_log;
mod text;

pub use chat_api::{ChatApi, message_number};
pub use deliver::{deliver, test};
pub use socket::Socket;
pub use step_log::{Tested, Undelivered};
