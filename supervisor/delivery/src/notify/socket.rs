//! WebSocket connection to a service (RFC 6455), with a time limit for each step.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::Uri;
use serde_json::Value;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::channel::ChannelClient;
use super::http::connect;
use super::step_log::{StepLog, Undelivered};
use net::http_client::Stream;

/// Size limit of one message, in bytes.
const MESSAGE_BYTES: usize = 4 << 20;
/// Time limit of a handshake, and of sending a message.
const LIMIT: Duration = Duration::from_secs(15);

/// An open connection.
#[expect(missing_debug_implementations, reason = "a stream of any kind")]
pub struct Socket(WebSocketStream<Box<dyn Stream>>);

impl Socket {
    /// Opens a connection. The address may have a secret in its query, so errors do not show it.
    pub(super) async fn open(channel: &ChannelClient<'_>, url: &str) -> Result<Self, Undelivered> {
        let unusable = || Undelivered::later("the address of the socket does not begin with wss:// or ws://");
        let http = match url.split_once("://") {
            Some(("wss", rest)) => format!("https://{rest}"),
            Some(("ws", rest)) => format!("http://{rest}"),
            Some(_) | None => return Err(unusable()),
        };
        let uri: Uri = http.parse().map_err(|_| unusable())?;
        let step_log = &mut StepLog::default();
        let trust = channel.trust_for(&http, step_log).await?;
        let stream = connect(&uri, trust, step_log).await?;
        let bounds = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES))
            .max_frame_size(Some(MESSAGE_BYTES))
            .max_write_buffer_size(MESSAGE_BYTES);
        let shaking = client_async_with_config(url, stream, Some(bounds));
        match tokio::time::timeout(LIMIT, shaking).await {
            Ok(Ok((socket, _))) => Ok(Socket(socket)),
            Ok(Err(error)) => Err(broken(&error)),
            Err(_) => Err(Undelivered::later("the service did not open the socket in time")),
        }
    }

    /// Returns the next message; null for a ping. Cancel-safe: an incomplete message is kept.
    pub async fn next(&mut self) -> Result<Value, Undelivered> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => {
                    return serde_json::from_str(text.as_str())
                        .map_err(|_| Undelivered::later("the service sends something that is not JSON"));
                }
                // The library has queued the pong; the flush sends it now.
                Some(Ok(Message::Ping(_))) => {
                    drop(tokio::time::timeout(LIMIT, self.0.flush()).await);
                    // The ping shows that a silent service is alive.
                    return Ok(Value::Null);
                }
                Some(Ok(Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map(|frame| u16::from(frame.code));
                    return Err(Undelivered::later(match code {
                        Some(code) => format!("the service closed the socket with the code {code}"),
                        None => "the service closed the socket".to_owned(),
                    }));
                }
                Some(Err(error)) => return Err(broken(&error)),
                None => return Err(Undelivered::later("the service closed the socket")),
            }
        }
    }

    pub async fn send(&mut self, message: &Value) -> Result<(), Undelivered> {
        let delivery = self.0.send(Message::text(message.to_string()));
        match tokio::time::timeout(LIMIT, delivery).await {
            Ok(sent) => sent.map_err(|error| broken(&error)),
            Err(_) => Err(Undelivered::later("the service takes nothing from the socket")),
        }
    }
}

/// Describes a failure. The text of an HTTP refusal is left out, because it may repeat the address.
fn broken(error: &Error) -> Undelivered {
    Undelivered::later(match error {
        Error::Http(response) => {
            format!("the service answers {} instead of opening the socket", response.status())
        }
        Error::Io(error) => format!("the socket broke: {error}"),
        Error::Capacity(_) => "the service sends more than is read".to_owned(),
        _ => "the socket broke".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    #[tokio::test]
    async fn a_service_that_only_asks_for_a_sign_of_life_is_not_silent() {
        let (near, far) = tokio::io::duplex(1 << 16);
        let near: Box<dyn Stream> = Box::new(near);
        let mut socket = Socket(WebSocketStream::from_raw_socket(near, Role::Client, None).await);
        let mut service = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
        service.send(Message::Ping(Vec::new().into())).await.unwrap();

        assert_eq!(socket.next().await.unwrap(), Value::Null);

        assert!(matches!(service.next().await, Some(Ok(Message::Pong(_)))), "it is answered");
        service.send(Message::text("{\"a\":1}")).await.unwrap();
        assert_eq!(socket.next().await.unwrap()["a"], 1);
    }
}
