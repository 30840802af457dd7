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
mod response;
mod signal;
mod slack;
pub(super) mod telegram;
pub(super) mod webhook;

use std::sync::Arc;

use super::batch::{Batch, is_urgent};
use super::channel::ChannelClient;
use super::step_log::{StepLog, Undelivered};
use super::text;
use crate::plugins::Calls;
use service::Service;
use setup::config::notify::Kind;

/// Message that a chat service is asked to show.
pub(super) struct ChatMessage<'a> {
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
pub(super) async fn send_chat(
    channel: &ChannelClient<'_>,
    message: &ChatMessage<'_>,
    step_log: &mut StepLog,
) -> Result<Option<String>, Undelivered> {
    match channel.settings.kind {
        Kind::Slack => slack::send_chat(channel, message, step_log).await,
        Kind::Discord => discord::send_chat(channel, message, step_log).await,
        Kind::Telegram => telegram::send_chat(channel, message, step_log).await,
        Kind::Webhook
        | Kind::Command
        | Kind::Desktop
        | Kind::Ntfy
        | Kind::Email
        | Kind::Signal
        | Kind::Plugin => {
            Err(step_log.failed("chat", Undelivered::later("a channel of its kind has no chats")))
        }
    }
}

/// Batch of messages, with the client of its channel.
pub(super) struct Delivery<'a> {
    pub(super) channel: ChannelClient<'a>,
    pub(super) batch: &'a Batch,
    /// State for calls of plugins.
    pub(super) service: &'a Arc<Service>,
    pub(super) calls: &'a Calls,
}

impl Delivery<'_> {
    /// Sends the message, and records each step. Returns its id for replies, if the channel can receive them.
    pub(super) async fn send(&self, step_log: &mut StepLog) -> Result<Option<String>, Undelivered> {
        let sent = match self.channel.settings.kind {
            Kind::Slack | Kind::Discord | Kind::Telegram => return self.send_to_chat(step_log).await,
            // A posted reply names the message by its id.
            Kind::Webhook => {
                return webhook::send(self, step_log).await.map(|()| Some(self.batch.id.clone()));
            }
            Kind::Command => command::send(self, step_log).await,
            Kind::Desktop => desktop::send(self, step_log).await,
            Kind::Ntfy => ntfy::send(self, step_log).await,
            Kind::Email => email::send(self, step_log).await,
            Kind::Signal => signal::send(self, step_log).await,
            Kind::Plugin => plugin::send(self, step_log).await,
        };
        sent.map(|()| None)
    }

    async fn send_to_chat(&self, step_log: &mut StepLog) -> Result<Option<String>, Undelivered> {
        let kind = self.channel.settings.kind;
        let message = ChatMessage {
            chat: self.need_chat(step_log)?,
            thread: self.batch.thread(),
            text: text::whole(self.batch, text::LONGEST, |text| escaped(kind, text)),
            is_quiet: !is_urgent(self.batch),
            id: Some(self.batch.id.clone()),
        };
        send_chat(&self.channel, &message, step_log).await
    }

    /// Returns the recipient: the subscription's chat, or the channel's default.
    fn need_chat(&self, step_log: &mut StepLog) -> Result<&str, Undelivered> {
        let chat = self.batch.chat(self.channel.settings.to.as_deref());
        chat.ok_or_else(|| {
            let why = "neither the channel nor the subscription names a chat: set `to`";
            step_log.failed("chat", Undelivered::later(why))
        })
    }
}
