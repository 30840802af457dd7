//! Sink: Discord. A bot sends to a channel or a thread. Messages mention no one, and their markup is escaped.

use hyper::header::AUTHORIZATION;
use serde_json::json;

use super::ChatMessage;
use super::response::ServiceResult;
use crate::notify::channel::ChannelClient;
use crate::notify::http::HttpRequest;
use crate::notify::step_log::{StepLog, Undelivered};

/// Longest nonce by which Discord recognises a repeated message.
const NONCE: usize = 25;

pub(super) async fn send_chat(
    channel: &ChannelClient<'_>,
    message: &ChatMessage<'_>,
    step_log: &mut StepLog,
) -> Result<Option<String>, Undelivered> {
    let token = channel.need_secret(step_log)?;
    // A thread is a channel of its own.
    let chat = message.thread.unwrap_or(message.chat);
    if chat.is_empty() || !chat.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(
            step_log.failed("chat", Undelivered::later("a channel of Discord is named by its number"))
        );
    }
    let mut body = json!({
        "content": message.text,
        "allowed_mentions": { "parse": [] },
        "flags": 4,
    });
    if let Some(id) = &message.id {
        body["nonce"] = nonce(id).into();
        body["enforce_nonce"] = true.into();
    }
    let url = format!("{}/channels/{chat}/messages", channel.base());
    let post = HttpRequest::json(url, &body).with(AUTHORIZATION, &format!("Bot {token}"));
    let post = post.map_err(|error| step_log.failed("secret", error))?;
    let response = channel.post(post, step_log).await?;
    let body = response.json();
    let after = body["retry_after"].as_f64();
    ServiceResult { is_refusal: false, why: body["message"].as_str(), after, is_final: false }
        .judge(response, step_log)?;
    Ok(body["id"].as_str().map(str::to_owned))
}

/// Shortens an id to its number, after the beginning of the board's id.
fn nonce(id: &str) -> String {
    let (board, number) = id.split_at_checked(36).unwrap_or((id, ""));
    board.chars().take(12).chain(number.chars()).take(NONCE).collect()
}

/// Escapes markdown and mentions.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '*' | '_' | '~' | '`' | '|' | '>' | '<' | '#' | '[' | ']' | '(' | ')' | '-' | '@' | ':'
        ) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup_or_a_mention() {
        assert_eq!(escaped("@everyone **x** [a](b)"), "\\@everyone \\*\\*x\\*\\* \\[a\\]\\(b\\)");
    }

    #[test]
    fn a_nonce_is_short_and_tells_messages_apart() {
        let id = |n: u64| nonce(&format!("01234567-89ab-cdef-0123-456789abcdef-{n}"));
        assert_eq!(id(17), "01234567-89a-17");
        assert!(id(u64::MAX).len() <= NONCE && id(1) != id(2));
    }
}
