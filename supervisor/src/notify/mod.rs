//! The delivery of messages to people, over the channels of the configuration.
//!
//! ```text
//! event ──one transaction──► outbox of the board ──► deliver ──► sink ──► service
//! ```
//!
//! * At least once: a message is removed after its channel has taken it. A daemon that is killed in between sends the one that was under
//!   way again, with the same id.
//! * In order: of one tenant to one address a message is sent when the one before it is delivered or dead.
//! * One delivery of a channel is under way at a time, and no more a minute than the channel says. Those of one tenant do not wait behind those of
//!   another: the addresses of a channel take turns.
//! * Nothing wakes an idle daemon but a new message, a reload, and the time of the next try.

mod deliver;
mod form;
mod http;
mod parcel;
mod plan;
mod sinks;
mod socket;
mod talk;
mod text;
mod trail;
mod wire;

pub(crate) use deliver::{deliver, test};
pub(crate) use socket::Socket;
pub(crate) use talk::{Talk, message_number};
pub(crate) use trail::{Tested, Undelivered};
