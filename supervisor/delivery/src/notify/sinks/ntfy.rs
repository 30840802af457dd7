//! Sink: ntfy. A message is published to a topic as JSON, so that no text enters a header.

use hyper::header::AUTHORIZATION;
use serde_json::json;

use super::Delivery;
use super::response::ServiceResult;
use crate::notify::batch::is_urgent;
use crate::notify::http::HttpRequest;
use crate::notify::step_log::{StepLog, Undelivered};
use crate::notify::text;

pub(super) async fn send(delivery: &Delivery<'_>, step_log: &mut StepLog) -> Result<(), Undelivered> {
    let token = delivery.channel.secret(step_log)?;
    let body = json!({
        "topic": delivery.need_chat(step_log)?,
        "title": text::subject(delivery.batch),
        "message": text::body(delivery.batch, text::LONGEST, str::to_owned),
        "priority": if is_urgent(delivery.batch) { 4 } else { 3 },
    });
    let mut post = HttpRequest::json(format!("{}/", delivery.channel.base()), &body);
    if let Some(token) = token {
        let with = post.with(AUTHORIZATION, &format!("Bearer {token}"));
        post = with.map_err(|error| step_log.failed("secret", error))?;
    }
    let response = delivery.channel.post(post, step_log).await?;
    let body = response.json();
    ServiceResult { is_refusal: false, why: body["error"].as_str(), after: None, is_final: false }
        .judge(response, step_log)
}
