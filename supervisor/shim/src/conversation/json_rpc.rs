//! Lines of JSON-RPC, as the programs of `acp` and `app-server` write and read them.

use serde::Deserialize;
use serde_json::{Value, json};

/// Line of the program: a request, a notification or a reply.
#[derive(Deserialize)]
pub(super) struct Incoming {
    pub(super) id: Option<Value>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
    #[serde(default)]
    pub(super) result: Value,
    pub(super) error: Option<RpcError>,
}

#[derive(Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) message: String,
}

/// Returns the reply to a request of the program that the relay does not carry out.
pub(super) fn refusal(id: &Value, method: &str) -> Value {
    let error = json!({ "code": -32601, "message": format!("nobody answers {method} here") });
    json!({ "id": id, "error": error })
}
