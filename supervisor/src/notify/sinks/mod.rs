//! The services that take messages: one file each.

mod command;
mod desktop;
mod discord;
mod email;
mod ntfy;
mod said;
mod signal;
mod slack;
mod telegram;
mod webhook;

use std::sync::Arc;

use hyper::Uri;
use rustls::ClientConfig;

use super::http::Post;
use super::parcel::Parcel;
use super::trail::{Trail, Undelivered};
use crate::config::notify::{Channel, Kind};
use crate::failure::with_causes;
use crate::proxy::trusting;
use crate::service::Service;

/// One delivery of a channel.
pub(super) struct Sending<'a> {
    pub(super) service: &'a Service,
    pub(super) name: &'a str,
    pub(super) channel: &'a Channel,
    pub(super) parcel: &'a Parcel,
}

impl Sending<'_> {
    /// Sends it, and keeps each step.
    pub(super) async fn send(&self, trail: &mut Trail) -> Result<(), Undelivered> {
        match self.channel.kind {
            Kind::Webhook => webhook::send(self, trail).await,
            Kind::Command => command::send(self, trail).await,
            Kind::Desktop => desktop::send(self, trail).await,
            Kind::Ntfy => ntfy::send(self, trail).await,
            Kind::Email => email::send(self, trail).await,
            Kind::Slack => slack::send(self, trail).await,
            Kind::Discord => discord::send(self, trail).await,
            Kind::Telegram => telegram::send(self, trail).await,
            Kind::Signal => signal::send(self, trail).await,
        }
    }

    /// The value of the channel's secret, read anew for each delivery; none where it has none.
    fn secret(&self, trail: &mut Trail) -> Result<Option<String>, Undelivered> {
        let Some(secret) = &self.channel.secret else { return Ok(None) };
        let stores = self.service.root().secret_stores();
        let read = secret.fetch(&format!("channel {}", self.name), &stores);
        let text = match read {
            Ok(value) => String::from_utf8(value.bytes().to_vec())
                .map_err(|_| Undelivered::later("the secret is not text")),
            Err(e) => Err(Undelivered::later(with_causes(&e))),
        };
        // A file that was written with an editor ends with a line break.
        let text = text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
        trail.note("secret", text, secret.place(&stores)).map(Some)
    }

    /// What a secret is needed for.
    fn need_secret(&self, trail: &mut Trail) -> Result<String, Undelivered> {
        let secret = self.secret(trail)?;
        secret.ok_or_else(|| trail.failed("secret", Undelivered::later("the channel names no secret")))
    }

    /// Where it goes: the chat of the subscription, or the channel's own.
    fn need_chat(&self, trail: &mut Trail) -> Result<&str, Undelivered> {
        let chat = self.parcel.chat(self.channel.to.as_deref());
        chat.ok_or_else(|| {
            let why = "neither the channel nor the subscription names a chat: set `to`";
            trail.failed("chat", Undelivered::later(why))
        })
    }

    /// The host of the service.
    fn host(&self) -> String {
        let uri: Option<Uri> = self.base().parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']').to_owned()
    }

    /// The address of the service without a slash at its end.
    fn base(&self) -> &str {
        self.channel.base().unwrap_or_default().trim_end_matches('/')
    }

    async fn post(&self, post: Post, trail: &mut Trail) -> Result<super::http::Answer, Undelivered> {
        let trust = if post.url.starts_with("https:") {
            let trust = self.trust().await;
            Some(trail.note("certificates", trust, "read")?)
        } else {
            None
        };
        post.send(trust, self.channel.timeout.duration(), trail).await
    }

    async fn trust(&self) -> Result<Arc<ClientConfig>, Undelivered> {
        let extra = self.service.config().proxy.ca.clone();
        let read = tokio::task::spawn_blocking(move || trusting(extra.as_deref())).await;
        let read = read.map_err(|_| Undelivered::later("the certificates were not read"))?;
        read.map_err(|e| Undelivered::later(with_causes(&e)))
    }
}
