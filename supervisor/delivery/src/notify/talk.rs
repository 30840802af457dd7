//! API of a chat service for the bridges: sends replies, and calls the methods that a bridge needs.

use std::time::Duration;

use hyper::header::AUTHORIZATION;
use policies::Secret;
use serde_json::{Value, json};

use super::http::Post;
use super::sinks::{Spoken, escaped, say, telegram, webhook};
use super::socket::Socket;
use super::trail::{Trail, Undelivered};
use super::wire::Wire;
use service::Service;
use setup::config::notify::{Channel, Kind};

/// Limit on a response with messages, in bytes.
const ANSWER_BYTES: usize = 8 << 20;

/// A channel with chats.
#[expect(missing_debug_implementations, reason = "its channel may have a secret, which no log may show")]
pub struct Talk<'a>(Wire<'a>);

impl<'a> Talk<'a> {
    pub fn new(service: &'a Service, name: &'a str, channel: &'a Channel) -> Self {
        Talk(Wire { service, name, channel })
    }

    /// Sends a message to a chat. `id` lets a service recognise a repetition.
    pub async fn say(
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

    /// Returns the bot's account at the service.
    pub async fn account(&self) -> Result<String, Undelivered> {
        match self.0.channel.kind {
            Kind::Telegram => {
                let me = self.telegram("getMe", &json!({}), self.0.channel.timeout.duration()).await?;
                Ok(format!("@{}", me["username"].as_str().unwrap_or("?")))
            }
            Kind::Slack => {
                let me = self.slack("auth.test", &json!({})).await?;
                Ok(format!("@{}", me["user"].as_str().unwrap_or("?")))
            }
            Kind::Discord => self.token().map(|_| "the token can be read".to_owned()),
            Kind::Webhook => {
                self.0.secret(&mut Trail::default()).map(|_| "it takes what is posted".to_owned())
            }
            Kind::Command | Kind::Desktop | Kind::Ntfy | Kind::Email | Kind::Signal | Kind::Plugin => {
                Err(Undelivered::later("nobody can write over a channel of its kind"))
            }
        }
    }

    /// Returns the value of a secret. `whose` names its user in an error.
    pub fn fetch(&self, whose: &str, secret: &Secret) -> Result<String, Undelivered> {
        self.0.fetch(whose, secret)
    }

    /// Returns the token of the bot.
    pub fn token(&self) -> Result<String, Undelivered> {
        self.0.need_secret(&mut Trail::default())
    }

    /// Returns the expected signature of a message by the channel's secret; none without a secret.
    pub fn signature(&self, id: &str, seconds: &str, body: &[u8]) -> Result<Option<String>, Undelivered> {
        let Some(secret) = self.0.secret(&mut Trail::default())? else { return Ok(None) };
        let signature = webhook::signature(&secret, id, seconds, body);
        signature
            .map(Some)
            .ok_or_else(|| Undelivered::Refused("the secret of the channel is not a key".to_owned()))
    }

    /// Calls a method of Slack as the bot. Returns its response.
    pub async fn slack(&self, method: &str, body: &Value) -> Result<Value, Undelivered> {
        self.slack_as(&self.token()?, method, body).await
    }

    async fn slack_as(&self, token: &str, method: &str, body: &Value) -> Result<Value, Undelivered> {
        let post = Post::json(format!("{}/{method}", self.0.base()), body);
        let post = post.with(AUTHORIZATION, &format!("Bearer {token}"))?;
        let answer = self.0.post(post, &mut Trail::default()).await?.taken(None, None)?;
        let said = answer.json();
        if said["ok"] == Value::Bool(true) {
            return Ok(said);
        }
        let why: String = said["error"].as_str().unwrap_or("no reason given").chars().take(100).collect();
        Err(Undelivered::later(format!("{method}: the service refuses it: {why}")))
    }

    /// Opens the socket of a Slack app, by its app-level token.
    pub async fn slack_socket(&self, token: &str) -> Result<Socket, Undelivered> {
        let opened = self.slack_as(token, "apps.connections.open", &json!({})).await?;
        Socket::open(&self.0, opened["url"].as_str().unwrap_or_default()).await
    }

    /// Opens the gateway of Discord.
    pub async fn discord_socket(&self, url: &str) -> Result<Socket, Undelivered> {
        Socket::open(&self.0, url).await
    }

    /// Returns up to a hundred messages of a Discord channel after a message, oldest first.
    pub async fn discord_messages(&self, channel: &str, after: u64) -> Result<Vec<Value>, Undelivered> {
        let url = format!("{}/channels/{channel}/messages?after={after}&limit=100", self.0.base());
        let mut get = Post::get(url).with(AUTHORIZATION, &format!("Bot {}", self.token()?))?;
        get.answer_bytes = ANSWER_BYTES;
        let answer = self.0.post(get, &mut Trail::default()).await?;
        let said = answer.json();
        let after = said["retry_after"].as_f64().and_then(|after| Duration::try_from_secs_f64(after).ok());
        answer.taken(said["message"].as_str(), after)?;
        let Value::Array(mut said) = said else { return Ok(Vec::new()) };
        said.sort_by_key(message_number);
        Ok(said)
    }

    /// Calls a method of a Telegram bot. Returns its result.
    pub async fn telegram(&self, method: &str, body: &Value, limit: Duration) -> Result<Value, Undelivered> {
        let trail = &mut Trail::default();
        let mut post = Post::json(telegram::address(&self.0, method, trail)?, body);
        post.answer_bytes = ANSWER_BYTES;
        let answer = self.0.post_within(post, limit, trail).await?;
        let mut said = answer.json();
        telegram::judge(&said).judge(answer, trail)?;
        Ok(said["result"].take())
    }
}

/// Returns the number of a Discord message. Later messages have higher numbers.
pub fn message_number(message: &Value) -> u64 {
    message["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0)
}
