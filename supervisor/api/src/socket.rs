//! WebSocket connections (RFC 6455): the handshake, and the connection after it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::listeners::{ConnectionPermit, RequestPermit};
use base::failure::Failure;

/// Time limit of the protocol switch.
const SWITCH: Duration = Duration::from_secs(10);
/// Limit on a message from a client, in bytes; clients have nothing to send.
const INCOMING_BYTES: usize = 4 << 10;

/// WebSocket of a client.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Parts of a request that concern the protocol switch.
#[derive(Debug)]
pub struct Switch {
    asks: bool,
    key: Option<HeaderValue>,
    on_upgrade: Option<OnUpgrade>,
    counts: HeldPermits,
}

/// Permits of the connection, held while it lasts.
#[derive(Debug)]
struct HeldPermits {
    _seat: Option<ConnectionPermit>,
    _permit: Option<Arc<RequestPermit>>,
}

/// A connection about to switch its protocol.
#[derive(Debug)]
pub struct Switching {
    on_upgrade: OnUpgrade,
    counts: HeldPermits,
}

impl<S: Send + Sync> FromRequestParts<S> for Switch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let has = |name, word| names(&parts.headers, name, word);
        let asks = has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket");
        let is_known =
            parts.headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
        let key = parts.headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| is_known).cloned();
        let counts = HeldPermits {
            _seat: parts.extensions.get::<ConnectionPermit>().cloned(),
            _permit: parts.extensions.get::<Arc<RequestPermit>>().cloned(),
        };
        Ok(Switch { asks, key, on_upgrade: parts.extensions.remove::<OnUpgrade>(), counts })
    }
}

/// Returns true if a header's list contains a word, in any case.
fn names(headers: &HeaderMap, name: header::HeaderName, word: &str) -> bool {
    let lists = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|entry| entry.trim().eq_ignore_ascii_case(word))
}

impl Switch {
    /// Returns true if the request asks for a WebSocket.
    pub fn is_asked(&self) -> bool {
        self.asks
    }

    /// Accepts the handshake. Returns the response, and the connection that switches once the response is sent.
    ///
    /// # Errors
    /// The request is not of version 13, or came over no connection.
    pub fn agree(self) -> Result<(Response, Switching), Failure> {
        let Some(key) = self.key else {
            return Err(Failure::usage("this is not a handshake of WebSocket version 13")
                .hint("send Sec-WebSocket-Version: 13 and a Sec-WebSocket-Key"));
        };
        let on_upgrade =
            self.on_upgrade.ok_or_else(|| Failure::failed("this connection keeps its protocol"))?;
        let headers = [
            (header::CONNECTION, "upgrade".to_owned()),
            (header::UPGRADE, "websocket".to_owned()),
            (header::SEC_WEBSOCKET_ACCEPT, derive_accept_key(key.as_bytes())),
        ];
        let response = (StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response();
        Ok((response, Switching { on_upgrade, counts: self.counts }))
    }
}

impl Switching {
    /// Returns the WebSocket; none if the client is gone. The second value holds the connection's permits.
    pub async fn socket(self) -> Option<(Socket, impl Send)> {
        let upgraded = tokio::time::timeout(SWITCH, self.on_upgrade).await.ok()?.ok()?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(INCOMING_BYTES))
            .max_frame_size(Some(INCOMING_BYTES));
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config));
        Some((socket.await, self.counts))
    }
}
