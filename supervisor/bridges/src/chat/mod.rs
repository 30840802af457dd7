//! Bridges to chats: people direct the boards from Telegram, Slack, Discord or a webhook, with the arguments of the
//! command line.
//!
//! ```text
//! service ──bridge──► Heard ──conversation──► registry ──call──► verb, as the person that the sender is
//!    ▲                                                             │
//!    └───────────────── one reply, bounded plain text ◄────────────┘
//! ```
//!
//! * Permissions are a file, `chat.d/NAME.toml` ([`setup::automation::chat`]), with the senders, their names and their
//!   rights. Other people get a refusal once in a while, and nothing is done.
//! * A line is parsed by the definition of its verb. Only the verbs and arguments of the registry are open: none reads
//!   a file, starts a process, or names a path of the host.
//! * A message that a service sends again is carried out once: the id of its request is derived from the service's own
//!   id.
//! * Each bridge is a separate task. If it hangs or dies, it is restarted, and nothing else is affected.

mod bridge;
mod bridges;
mod commands;
mod conversation;
mod directory;
mod discord;
mod discord_message;
mod discord_missed;
mod listing;
mod mention;
mod rate_limit;
mod registry;
mod reply;
mod scheduling;
mod slack;
mod telegram;
mod verb;
mod webhook;

use api::{Surface, mount_exchange};

/// Adds the configured chats to the daemon's tasks.
pub fn mount(surface: Surface) -> Surface {
    let mut surface =
        mount_exchange(surface, webhook::MESSAGES, |ask, whole| Box::pin(webhook::exchange(ask, whole)));
    surface.background.push(|service, stop| Box::pin(bridges::serve(service, stop)));
    surface
}
