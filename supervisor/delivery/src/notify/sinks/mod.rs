//! Services that accept messages, one file each.
//!
//! Services with chats send deliveries and replies to people by the same request.
//!
//! No sink uses markup: in a chat, the text of a worker could mention all members, hide a link, or look like a
//! message of another sender. A bot is addressed by a token and a chat, and not by an address that is a secret.

mod command;
mod desktop;
mod discord;
mod email;
mod ntfy;
mod plugin;
mod said;
mod signal;
mod slack;
pub(super) mod telegram;
pub(super) mod webhook;

use std::sync::Arc;

use super::parcel::{Parcel, is_urgent};
use super::text;
use super::trail::{Trail, Undelivered};
use super::wire::Wire;
use crate::plugins::Calls;
use service::Service;
use setup::config::notify::Kind;

/// A message to a chat.
pub(super) struct Spoken<'a> {
    pub(super) chat: &'a str,
    pub(super) thread: Option<&'a str>,
    /// Text, escaped for the service by [`escaped`].
    pub(super) text: String,
    /// True for a silent notification.
    pub(super) is_quiet: bool,
    /// Id by which the service recognises a repetition.
    pub(super) id: Option<String>,
}

/// Escapes another's text for a kind of channel.
pub(super) fn escaped(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Slack => slack::escaped(text),
        Kind::Discord => discord::escaped(text),
        Kind::Telegram
        | Kind::Webhook
        | Kind::Command
        | Kind::Desktop
        | Kind::Ntfy
        | Kind::Email
        | Kind::Signal
        | Kind::Plugin => text.to_owned(),
    }
}

/// Sends a message to a chat. Returns the service's id of the message.
pub(super) async fn say(
    wire: &Wire<'_>,
    spoken: &Spoken<'_>,
    trail: &mut Trail,
) -> Result<Option<String>, Undelivered> {
    match wire.channel.kind {
        Kind::Slack => slack::say(wire, spoken, trail).await,
        Kind::Discord => discord::say(wire, spoken, trail).await,
        Kind::Telegram => telegram::say(wire, spoken, trail).await,
        Kind::Webhook
        | Kind::Command
        | Kind::Desktop
        | Kind::Ntfy
        | Kind::Email
        | Kind::Signal
        | Kind::Plugin => Err(trail.failed("chat", Undelivered::later("a channel of its kind has no chats"))),
    }
}

/// A delivery of a channel.
pub(super) struct Sending<'a> {
    pub(super) wire: Wire<'a>,
    pub(super) parcel: &'a Parcel,
    /// State for calls of plugins.
    pub(super) boards: &'a Arc<Service>,
    pub(super) calls: &'a Calls,
}

impl Sending<'_> {
    /// Sends the message, and records each step. Returns its id for replies, if the channel can receive them.
    pub(super) async fn send(&self, trail: &mut Trail) -> Result<Option<String>, Undelivered> {
        let sent = match self.wire.channel.kind {
            Kind::Slack | Kind::Discord | Kind::Telegram => return self.speak(trail).await,
            // A posted reply names the message by its id.
            Kind::Webhook => {
                return webhook::send(self, trail).await.map(|()| Some(self.parcel.id.clone()));
            }
            Kind::Command => command::send(self, trail).await,
            Kind::Desktop => desktop::send(self, trail).await,
            Kind::Ntfy => ntfy::send(self, trail).await,
            Kind::Email => email::send(self, trail).await,
            Kind::Signal => signal::send(self, trail).await,
            Kind::Plugin => plugin::send(self, trail).await,
        };
        sent.map(|()| None)
    }

    async fn speak(&self, trail: &mut Trail) -> Result<Option<String>, Undelivered> {
        let kind = self.wire.channel.kind;
        let spoken = Spoken {
            chat: self.need_chat(trail)?,
            thread: self.parcel.thread(),
            text: text::whole(self.parcel, text::LONGEST, |text| escaped(kind, text)),
            is_quiet: !is_urgent(self.parcel),
            id: Some(self.parcel.id.clone()),
        };
        say(&self.wire, &spoken, trail).await
    }

    /// Returns the recipient: the subscription's chat, or the channel's default.
    fn need_chat(&self, trail: &mut Trail) -> Result<&str, Undelivered> {
        let chat = self.parcel.chat(self.wire.channel.to.as_deref());
        chat.ok_or_else(|| {
            let why = "neither the channel nor the subscription names a chat: set `to`";
            trail.failed("chat", Undelivered::later(why))
        })
    }
}
