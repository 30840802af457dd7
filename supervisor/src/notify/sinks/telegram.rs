//! Telegram: `sendMessage` of a bot, as plain text, so that nothing in a title is markup.

use hyper::header::HeaderValue;
use serde_json::{Value, json};

use super::Sending;
use super::said::{Said, number};
use crate::notify::http::Post;
use crate::notify::parcel::is_urgent;
use crate::notify::text;
use crate::notify::trail::{Trail, Undelivered};

pub(super) async fn send(sending: &Sending<'_>, trail: &mut Trail) -> Result<(), Undelivered> {
    let token = sending.need_secret(trail)?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-');
    if !token.chars().all(is_token) || HeaderValue::from_str(&token).is_err() {
        return Err(
            trail.failed("secret", Undelivered::later("the secret is no token of a bot: it is 123456:ABC…"))
        );
    }
    let chat = sending.need_chat(trail)?;
    let mut body = json!({
        "chat_id": chat,
        "text": text::whole(sending.parcel, text::LONGEST, str::to_owned),
        "link_preview_options": { "is_disabled": true },
        "disable_notification": !is_urgent(sending.parcel),
    });
    if let Some(thread) = sending.parcel.thread() {
        body["message_thread_id"] = number(thread);
    }
    let post = Post::json(format!("{}/bot{token}/sendMessage", sending.base()), &body);
    let answer = sending.post(post, trail).await?;
    let said = answer.json();
    let said = Said {
        is_refusal: said["ok"] == Value::Bool(false),
        why: said["description"].as_str(),
        after: said["parameters"]["retry_after"].as_f64(),
        is_final: false,
    };
    said.judge(answer, trail)
}
