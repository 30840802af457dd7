//! API of a chat service for the bridges: sends replies, and calls the methods that a bridge needs.

use std::time::Duration;

use hyper::header::AUTHORIZATION;
use policies::Secret;
use serde_json::{Value, json};

use super::channel::ChannelClient;
use super::http::HttpRequest;
use super::sinks::{ChatMessage, escaped, send_chat, telegram, webhook};
use super::socket::Socket;
use super::step_log::{StepLog, Undelivered};
use service::Service;
use setup::config::notify::{Channel, Kind};

/// Limit on a response with messages, in bytes.
const RESPONSE_BYTES: usize = 8 << 20;

/// A channel with chats.
#[expect(missing_debug_implementations, reason = "its channel may have a secret, which no log may show")]
pub struct ChatApi<'a>(ChannelClient<'a>);

impl<'a> ChatApi<'a> {
    pub fn new(service: &'a Service, name: &'a str, channel: &'a Channel) -> Self {
        ChatApi(ChannelClient { service, name, settings: channel })
    }

    /// Sends a message to a chat. `id` lets a service recognise a repetition.
    pub async fn send(
        &self,
        chat: &str,
        thread: Option<&str>,
        text: &str,
        id: &str,
    ) -> Result<(), Undelivered> {
        let text = escaped(self.0.settings.kind, text);
        let message = ChatMessage { chat, thread, text, is_quiet: false, id: Some(id.to_owned()) };
        send_chat(&self.0, &message, &mut StepLog::default()).await.map(drop)
    }

    /// Returns the bot's account at the service.
    pub async fn account(&self) -> Result<String, Undelivered> {
        match self.0.settings.kind {
            Kind::Telegram => {
                let me = self.telegram("getMe", &json!({}), self.0.settings.timeout.duration()).await?;
                Ok(format!("@{}", me["username"].as_str().unwrap_or("?")))
            }
            Kind::Slack => {
                let me = self.slack("auth.test", &json!({})).await?;
                Ok(format!("@{}", me["user"].as_str().unwrap_or("?")))
            }
            Kind::Discord => self.token().map(|_| "the token can be read".to_owned()),
            Kind::Webhook => {
                self.0.secret(&mut StepLog::default()).map(|_| "it takes what is posted".to_owned())
            }
            Kind::Command | Kind::Desktop | Kind::Ntfy | Kind::Email | Kind::Signal | Kind::Plugin => {
                Err(Undelivered::later("nobody can write over a channel of its kind"))
            }
        }
    }

    /// Returns the value of a secret. `purpose` names the use of the secret in an error.
    pub fn fetch(&self, purpose: &str, secret: &Secret) -> Result<String, Undelivered> {
        self.0.fetch(purpose, secret)
    }

    /// Returns the token of the bot.
    pub fn token(&self) -> Result<String, Undelivered> {
        self.0.need_secret(&mut StepLog::default())
    }

    /// Returns the expected signature of a message by the channel's secret; none without a secret.
    pub fn signature(&self, id: &str, seconds: &str, body: &[u8]) -> Result<Option<String>, Undelivered> {
        let Some(secret) = self.0.secret(&mut StepLog::default())? else { return Ok(None) };
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
        let post = HttpRequest::json(format!("{}/{method}", self.0.base()), body);
        let post = post.with(AUTHORIZATION, &format!("Bearer {token}"))?;
        let response = self.0.post(post, &mut StepLog::default()).await?.accepted(None, None)?;
        let body = response.json();
        if body["ok"] == Value::Bool(true) {
            return Ok(body);
        }
        let why: String = body["error"].as_str().unwrap_or("no reason given").chars().take(100).collect();
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
        let mut get = HttpRequest::get(url).with(AUTHORIZATION, &format!("Bot {}", self.token()?))?;
        get.response_bytes = RESPONSE_BYTES;
        let response = self.0.post(get, &mut StepLog::default()).await?;
        let body = response.json();
        let after = body["retry_after"].as_f64().and_then(|after| Duration::try_from_secs_f64(after).ok());
        response.accepted(body["message"].as_str(), after)?;
        let Value::Array(mut body) = body else { return Ok(Vec::new()) };
        body.sort_by_key(message_number);
        Ok(body)
    }

    /// Calls a method of a Telegram bot. Returns its result.
    pub async fn telegram(&self, method: &str, body: &Value, limit: Duration) -> Result<Value, Undelivered> {
        let step_log = &mut StepLog::default();
        let mut post = HttpRequest::json(telegram::address(&self.0, method, step_log)?, body);
        post.response_bytes = RESPONSE_BYTES;
        let response = self.0.post_within(post, limit, step_log).await?;
        let mut body = response.json();
        telegram::judge(&body).judge(response, step_log)?;
        Ok(body["result"].take())
    }
}

/// Returns the number of a Discord message. Later messages have higher numbers.
pub fn message_number(message: &Value) -> u64 {
    message["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0)
}
