//! Sink: Slack, by `chat.postMessage` of a bot. `&`, `<` and `>` are escaped, so that no text becomes a mention
//! (`<!everyone>`) or a link. Markup is off.

use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::Spoken;
use super::said::Said;
use crate::notify::http::Post;
use crate::notify::trail::{Trail, Undelivered};
use crate::notify::wire::Wire;

/// Errors of Slack for a message that it will never accept.
const FINAL: [&str; 3] = ["msg_too_long", "no_text", "invalid_arguments"];

pub(super) async fn say(
    wire: &Wire<'_>,
    spoken: &Spoken<'_>,
    trail: &mut Trail,
) -> Result<Option<String>, Undelivered> {
    let token = wire.need_secret(trail)?;
    let mut body = json!({
        "channel": spoken.chat,
        "text": spoken.text,
        "mrkdwn": false,
        "parse": "none",
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
    });
    if let Some(thread) = spoken.thread {
        body["thread_ts"] = thread.into();
    }
    let url = format!("{}/chat.postMessage", wire.base());
    let post = Post::json(url, &body).with(AUTHORIZATION, &format!("Bearer {token}"));
    let post = post.map_err(|error| trail.failed("secret", error))?;
    let answer = wire.post(post, trail).await?;
    let said = answer.json();
    let why = said["error"].as_str();
    let is_final = why.is_some_and(|why| FINAL.contains(&why));
    Said { is_refusal: said["ok"] != Value::Bool(true), why, after: None, is_final }.judge(answer, trail)?;
    Ok(said["ts"].as_str().map(str::to_owned))
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
