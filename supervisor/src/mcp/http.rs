//! The server over HTTP: each request is answered by itself, in the daemon. There are no sessions, so nothing is kept open.

use std::sync::Arc;

use http_body_util::Full;
use hyper::Request;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::board::Board;
use super::server::Server;
use crate::api::{Answered, Ask, Surface, Whole, mount_exchange};

/// Adds the path of the tools.
pub(crate) fn mount(surface: Surface) -> Surface {
    let routes = mount_exchange(surface.routes, "/mcp", |ask, request| Box::pin(exchange(ask, request)));
    Surface { routes, ..surface }
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
