//! Sink: Signal, by `send` of signal-cli, which runs as a daemon with `--http` (JSON-RPC 2.0).

use serde_json::json;

use super::Delivery;
use super::response::ServiceResult;
use crate::notify::http::HttpRequest;
use crate::notify::step_log::{StepLog, Undelivered};
use crate::notify::text;

/// Prefix of a recipient that is a group.
const GROUP: &str = "group:";

pub(super) async fn send(delivery: &Delivery<'_>, step_log: &mut StepLog) -> Result<(), Undelivered> {
    let to = delivery.need_chat(step_log)?;
    let mut parameters = json!({
        "account": delivery.channel.settings.from,
        "message": text::whole(delivery.batch, text::LONGEST, str::to_owned),
    });
    match to.strip_prefix(GROUP) {
        Some(group) => parameters["groupId"] = group.into(),
        None => parameters["recipient"] = json!([to]),
    }
    let call = json!({ "jsonrpc": "2.0", "method": "send", "id": delivery.batch.id, "params": parameters });
    let post = HttpRequest::json(format!("{}/api/v1/rpc", delivery.channel.base()), &call);
    let response = delivery.channel.post(post, step_log).await?;
    let body = response.json();
    let error = &body["error"];
    let after = error["data"]["response"]["results"][0]["retryAfterSeconds"].as_f64();
    ServiceResult { is_refusal: !error.is_null(), why: error["message"].as_str(), after, is_final: false }
        .judge(response, step_log)
}
