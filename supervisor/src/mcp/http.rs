//! The server over HTTP: each request is answered by itself, in the daemon. There are no sessions, so nothing is kept open.

use std::sync::Arc;

use http_body_util::Full;
use hyper::Request;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use schemars::{Schema, json_schema};

use super::board::Board;
use super::server::Server;
use crate::api::{Answered, Ask, Messages, Surface, Whole, mount_exchange};

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

/// A message of JSON-RPC 2.0, whose methods and results the protocol describes.
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

/// Answers one message of a caller who is known. Its body was bounded, and its reply is charged, like every other.
async fn exchange(ask: Ask, request: Whole) -> Answered {
    let Whole { head, body, reserved } = request;
    let board = Arc::new(Board::Ask(Box::new(ask)));
    // The doors know hosts. A page of a browser names its origin, and no page has business here.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(body.len().max(1))
        .disable_allowed_hosts()
        .enforce_origin_validation();
    let service = StreamableHttpService::new(
        move || Ok(Server::new(Arc::clone(&board), None)),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let answer = service.handle(Request::from_parts(head, Full::new(body))).await;
    drop(reserved);
    answer
}
