//! Sink: Signal, by `send` of signal-cli, which runs as a daemon with `--http` (JSON-RPC 2.0).

use serde_json::json;

use super::Sending;
use super::said::Said;
use crate::notify::http::Post;
use crate::notify::text;
use crate::notify::trail::{Trail, Undelivered};

/// Prefix of a recipient that is a group.
const GROUP: &str = "group:";

pub(super) async fn send(sending: &Sending<'_>, trail: &mut Trail) -> Result<(), Undelivered> {
    let to = sending.need_chat(trail)?;
    let mut parameters = json!({
        "account": sending.wire.channel.from,
        "message": text::whole(sending.parcel, text::LONGEST, str::to_owned),
    });
    match to.strip_prefix(GROUP) {
        Some(group) => parameters["groupId"] = group.into(),
        None => parameters["recipient"] = json!([to]),
    }
    let call = json!({ "jsonrpc": "2.0", "method": "send", "id": sending.parcel.id, "params": parameters });
    let post = Post::json(format!("{}/api/v1/rpc", sending.wire.base()), &call);
    let answer = sending.wire.post(post, trail).await?;
    let said = answer.json();
    let error = &said["error"];
    let after = error["data"]["response"]["results"][0]["retryAfterSeconds"].as_f64();
    Said { is_refusal: !error.is_null(), why: error["message"].as_str(), after, is_final: false }
        .judge(answer, trail)
}
