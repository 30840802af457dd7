//! A service with chats, for those who talk over it: what is said, and what is asked beside that.

use std::time::Duration;

use serde_json::{Value, json};

use super::http::Post;
use super::sinks::{Spoken, escaped, say, telegram};
use super::trail::{Trail, Undelivered};
use super::wire::Wire;
use crate::config::notify::{Channel, Kind};
use crate::service::Service;

/// How much of an answer with messages is read.
const ANSWER_BYTES: usize = 8 << 20;

/// A channel that is talked over.
pub(crate) struct Talk<'a>(Wire<'a>);

impl<'a> Talk<'a> {
    pub(crate) fn new(service: &'a Service, name: &'a str, channel: &'a Channel) -> Self {
        Talk(Wire { service, name, channel })
    }

    /// Says something in a chat. A service that knows messages by an id knows this one by `id`.
    pub(crate) async fn say(
        &self,
        chat: &str,
        thread: Option<&str>,
        text: &str,
        id: &str,
    ) -> Result<(), Undelivered> {
        let text = escaped(self.0.channel.kind, text);
        let spoken = Spoken { chat, thread, text, is_quiet: false, id: Some(id.to_owned()) };
        say(&self.0, &spoken, &mut Trail::default()).await.map(drop)
    }

    /// Asks the service as whom this is there.
    pub(crate) async fn account(&self) -> Result<String, Undelivered> {
        match self.0.channel.kind {
            Kind::Telegram => {
                let me = self.telegram("getMe", &json!({}), self.0.channel.timeout.duration()).await?;
                Ok(format!("@{}", me["username"].as_str().unwrap_or("?")))
            }
            Kind::Slack
            | Kind::Discord
            | Kind::Webhook
            | Kind::Command
            | Kind::Desktop
            | Kind::Ntfy
            | Kind::Email
            | Kind::Signal
            | Kind::Plugin => Err(Undelivered::later("nothing can be heard over a channel of its kind")),
        }
    }

    /// Calls a method of a Telegram bot, and returns its result.
    pub(crate) async fn telegram(
        &self,
        method: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<Value, Undelivered> {
        let trail = &mut Trail::default();
        let mut post = Post::json(telegram::address(&self.0, method, trail)?, body);
        post.answer_bytes = ANSWER_BYTES;
        let answer = self.0.post_within(post, limit, trail).await?;
        let mut said = answer.json();
        telegram::judge(&said).judge(answer, trail)?;
        Ok(said["result"].take())
    }
}
