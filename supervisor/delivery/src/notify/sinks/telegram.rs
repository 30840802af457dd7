//! Sink: Telegram, by `sendMessage` of a bot, as plain text, so that no title becomes markup.

use hyper::header::HeaderValue;
use serde_json::{Value, json};

use super::ChatMessage;
use super::response::{ServiceResult, number};
use crate::notify::channel::ChannelClient;
use crate::notify::http::HttpRequest;
use crate::notify::step_log::{StepLog, Undelivered};

pub(super) async fn send_chat(
    channel: &ChannelClient<'_>,
    message: &ChatMessage<'_>,
    step_log: &mut StepLog,
) -> Result<Option<String>, Undelivered> {
    let mut body = json!({
        "chat_id": message.chat,
        "text": message.text,
        "link_preview_options": { "is_disabled": true },
        "disable_notification": message.is_quiet,
    });
    if let Some(thread) = message.thread {
        body["message_thread_id"] = number(thread);
    }
    let post = HttpRequest::json(address(channel, "sendMessage", step_log)?, &body);
    let response = channel.post(post, step_log).await?;
    let body = response.json();
    judge(&body).judge(response, step_log)?;
    Ok(body["result"]["message_id"].as_i64().map(|id| id.to_string()))
}

/// Returns the address of a method of the bot, with the token in it.
pub(in crate::notify) fn address(
    channel: &ChannelClient<'_>,
    method: &str,
    step_log: &mut StepLog,
) -> Result<String, Undelivered> {
    let token = channel.need_secret(step_log)?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-');
    if !token.chars().all(is_token) || HeaderValue::from_str(&token).is_err() {
        return Err(step_log.failed(
            "secret",
            Undelivered::later("the secret is not a bot token; write one such as 123456:ABC…"),
        ));
    }
    Ok(format!("{}/bot{token}/{method}", channel.base()))
}

/// Reads the result in a response of Telegram.
pub(in crate::notify) fn judge(body: &Value) -> ServiceResult<'_> {
    ServiceResult {
        is_refusal: body["ok"] == Value::Bool(false),
        why: body["description"].as_str(),
        after: body["parameters"]["retry_after"].as_f64(),
        is_final: false,
    }
}
