//! Sink: Slack, by `chat.postMessage` of a bot. `&`, `<` and `>` are escaped, so that no text becomes a mention
//! (`<!everyone>`) or a link. Markup is off.

use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::ChatMessage;
use super::response::ServiceResult;
use crate::notify::channel::ChannelClient;
use crate::notify::http::HttpRequest;
use crate::notify::step_log::{StepLog, Undelivered};

/// Errors of Slack for a message that it will never accept.
const FINAL: [&str; 3] = ["msg_too_long", "no_text", "invalid_arguments"];

pub(super) async fn send_chat(
    channel: &ChannelClient<'_>,
    message: &ChatMessage<'_>,
    step_log: &mut StepLog,
) -> Result<Option<String>, Undelivered> {
    let token = channel.need_secret(step_log)?;
    let mut body = json!({
        "channel": message.chat,
        "text": message.text,
        "mrkdwn": false,
        "parse": "none",
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
    });
    if let Some(thread) = message.thread {
        body["thread_ts"] = thread.into();
    }
    let url = format!("{}/chat.postMessage", channel.base());
    let post = HttpRequest::json(url, &body).with(AUTHORIZATION, &format!("Bearer {token}"));
    let post = post.map_err(|error| step_log.failed("secret", error))?;
    let response = channel.post(post, step_log).await?;
    let body = response.json();
    let why = body["error"].as_str();
    let is_final = why.is_some_and(|why| FINAL.contains(&why));
    ServiceResult { is_refusal: body["ok"] != Value::Bool(true), why, after: None, is_final }
        .judge(response, step_log)?;
    Ok(body["ts"].as_str().map(str::to_owned))
}

/// Escapes text for Slack (docs.slack.dev, "Formatting message text").
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_text_is_a_mention_or_a_link() {
        assert_eq!(super::escaped("<!everyone> <@U1> a&b"), "&lt;!everyone&gt; &lt;@U1&gt; a&amp;b");
    }
}
