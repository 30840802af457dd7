//! MCP server over HTTP, in the daemon. Each request is independent: without sessions, nothing is kept open.
//!
//! A hostile worker can hold open what it can open, and the protocol has no sessions since 2026-07-28. A request with
//! an `Origin` is refused, so that no page of a browser calls.

use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use schemars::{Schema, json_schema};
use serde::de::IgnoredAny;
use serde_json::json;

use super::board::ToolBoard;
use super::server::McpServer;
use api::{Ask, Messages, Surface, WholeRequest, WholeResponse, mount_exchange};

/// Adds the path of the tools.
pub(crate) fn mount(surface: Surface) -> Surface {
    let messages = Messages {
        path: "/mcp",
        about: "A message of the Model Context Protocol, over streamable HTTP without a session",
        verb: None,
        message: of_json_rpc,
        reply: of_json_rpc,
    };
    mount_exchange(surface, messages, |ask, request| Box::pin(exchange(ask, request)))
}

/// Returns the schema of a JSON-RPC 2.0 message; the protocol describes its methods and results.
fn of_json_rpc() -> Schema {
    json_schema!({
        "type": "object",
        "required": ["jsonrpc"],
        "properties": {
            "jsonrpc": { "const": "2.0" },
            "id": { "type": ["string", "integer"] },
            "method": { "type": "string" },
            "params": { "type": "object" },
            "result": { "type": "object" },
            "error": { "type": "object" },
        },
    })
}

/// Handles one message of an identified caller. Its body and its reply count against the limits of all requests.
async fn exchange(ask: Ask, request: WholeRequest) -> WholeResponse {
    let WholeRequest { head, body, reserved } = request;
    if is_no_json(&head, &body) {
        return no_json();
    }
    let board = Arc::new(ToolBoard::Ask(Box::new(ask)));
    // The listeners check hosts. A browser's page sends its origin, and pages are not served here.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(body.len().max(1))
        .disable_allowed_hosts()
        .enforce_origin_validation();
    let service = StreamableHttpService::new(
        move || Ok(McpServer::new(Arc::clone(&board), None)),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let answer = service.handle(Request::from_parts(head, Full::new(body))).await;
    drop(reserved);
    answer
}

/// Returns true if a body claims to be JSON and is not.
fn is_no_json(head: &Parts, body: &[u8]) -> bool {
    let content_type = head
        .headers
        .get(CONTENT_TYPE)
        .and_then(|content_type| content_type.to_str().ok())
        .unwrap_or_default();
    let is_json = content_type.trim_start().to_ascii_lowercase().starts_with("application/json");
    head.method == Method::POST && is_json && serde_json::from_slice::<IgnoredAny>(body).is_err()
}

/// Returns the JSON-RPC error for a text that is not JSON.
fn no_json() -> WholeResponse {
    let error = json!({
        "jsonrpc": "2.0",
        "id": null,
        "error": { "code": -32700, "message": "the body is not JSON: send one message of the protocol" },
    });
    let mut answer = WholeResponse::new(Full::new(Bytes::from(error.to_string())).boxed());
    *answer.status_mut() = StatusCode::BAD_REQUEST;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
