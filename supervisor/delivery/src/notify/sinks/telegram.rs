//! Sink: Telegram, by `sendMessage` of a bot, as plain text, so that no title becomes markup.

use hyper::header::HeaderValue;
use serde_json::{Value, json};

use super::Spoken;
use super::said::{Said, number};
use crate::notify::http::Post;
use crate::notify::trail::{Trail, Undelivered};
use crate::notify::wire::Wire;

pub(super) async fn say(
    wire: &Wire<'_>,
    spoken: &Spoken<'_>,
    trail: &mut Trail,
) -> Result<Option<String>, Undelivered> {
    let mut body = json!({
        "chat_id": spoken.chat,
        "text": spoken.text,
        "link_preview_options": { "is_disabled": true },
        "disable_notification": spoken.is_quiet,
    });
    if let Some(thread) = spoken.thread {
        body["message_thread_id"] = number(thread);
    }
    let post = Post::json(address(wire, "sendMessage", trail)?, &body);
    let answer = wire.post(post, trail).await?;
    let said = answer.json();
    judge(&said).judge(answer, trail)?;
    Ok(said["result"]["message_id"].as_i64().map(|id| id.to_string()))
}

/// Returns the address of a method of the bot, with the token in it.
pub(in crate::notify) fn address(
    wire: &Wire<'_>,
    method: &str,
    trail: &mut Trail,
) -> Result<String, Undelivered> {
    let token = wire.need_secret(trail)?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-');
    if !token.chars().all(is_token) || HeaderValue::from_str(&token).is_err() {
        return Err(trail.failed(
            "secret",
            Undelivered::later("the secret is not a bot token; write one such as 123456:ABC…"),
        ));
    }
    Ok(format!("{}/bot{token}/{method}", wire.base()))
}

/// Reads the result in a response of Telegram.
pub(in crate::notify) fn judge(said: &Value) -> Said<'_> {
    Said {
        is_refusal: said["ok"] == Value::Bool(false),
        why: said["description"].as_str(),
        after: said["parameters"]["retry_after"].as_f64(),
        is_final: false,
    }
}
