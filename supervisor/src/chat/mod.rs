//! The bridges to chats: people direct the boards from Telegram, Slack, Discord or a webhook, by the lines that the command line takes.
//!
//! ```text
//! service ──bridge──► Heard ──conversation──► registry ──call──► verb, as the person that the sender is
//!    ▲                                                             │
//!    └───────────────── one reply, bounded plain text ◄────────────┘
//! ```
//!
//! * Who may do what is a file, `chat.d/NAME.toml` ([`crate::automation::chat`]): its senders, each with a name and with what it may do. Others are answered once in a
//!   while, and nothing is done.
//! * A line is parsed by the definition of its verb. Only the verbs and arguments of the registry are open: none reads a file, starts a
//!   process, or names a place of the host.
//! * A message that a service sends again acts once: the id of its request is made of the service's own id.
//! * Each bridge is a task of its own. One that hangs or dies is tried again, and harms nothing else.

mod bridge;
mod bridges;
mod commands;
mod conversation;
mod discord;
mod discord_message;
mod discord_missed;
mod here;
mod listing;
mod mention;
mod pace;
mod registry;
mod reply;
mod scheduling;
mod slack;
mod telegram;
mod verb;
mod webhook;

use crate::api::{Surface, mount_exchange};

/// Has the daemon serve the chats of the configuration beside its doors.
pub(crate) fn mount(surface: Surface) -> Surface {
    let mut surface =
        mount_exchange(surface, webhook::MESSAGES, |ask, whole| Box::pin(webhook::exchange(ask, whole)));
    surface.beside.push(|service, stop| Box::pin(bridges::serve(service, stop)));
    surface
}
