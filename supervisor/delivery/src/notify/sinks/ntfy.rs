//! Sink: ntfy. A message is published to a topic as JSON, so that no text enters a header.

use hyper::header::AUTHORIZATION;
use serde_json::json;

use super::Sending;
use super::said::Said;
use crate::notify::http::Post;
use crate::notify::parcel::is_urgent;
use crate::notify::text;
use crate::notify::trail::{Trail, Undelivered};

pub(super) async fn send(sending: &Sending<'_>, trail: &mut Trail) -> Result<(), Undelivered> {
    let token = sending.wire.secret(trail)?;
    let body = json!({
        "topic": sending.need_chat(trail)?,
        "title": text::subject(sending.parcel),
        "message": text::body(sending.parcel, text::LONGEST, str::to_owned),
        "priority": if is_urgent(sending.parcel) { 4 } else { 3 },
    });
    let mut post = Post::json(format!("{}/", sending.wire.base()), &body);
    if let Some(token) = token {
        let with = post.with(AUTHORIZATION, &format!("Bearer {token}"));
        post = with.map_err(|error| trail.failed("secret", error))?;
    }
    let answer = sending.wire.post(post, trail).await?;
    let said = answer.json();
    Said { is_refusal: false, why: said["error"].as_str(), after: None, is_final: false }.judge(answer, trail)
}
