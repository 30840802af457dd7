//! Sends one message to a collector (OTLP 1, "OTLP/HTTP"): one HTTP request within a time limit.

use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, StatusCode, header};
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::http_client;
use base::failure::with_causes;
use setup::config::telemetry::Endpoint;

/// Time limit of a message.
const TIME: Duration = Duration::from_secs(10);
/// Limit on the bytes read of a reply.
const RESPONSE_BYTES: usize = 64 << 10;

/// Reason why a message was not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAccepted {
    /// Another try may help.
    #[error("{0}")]
    Later(String),
    /// The same message would be refused again.
    #[error("it answers {0}")]
    Refused(StatusCode),
}

/// Reply to a message, with the number of rejected spans.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExportResponse {
    partial_success: PartialSuccess,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    /// 64-bit integer, which OTLP's JSON encodes as a string.
    rejected_spans: String,
}

/// Sends a message. Returns the number of rejected spans.
pub(crate) async fn send(endpoint: &Endpoint, message: Bytes) -> Result<u64, NotAccepted> {
    let late = || NotAccepted::Later(format!("it does not answer within {} seconds", TIME.as_secs()));
    tokio::time::timeout(TIME, exchange(endpoint, message)).await.map_err(|_| late())?
}

async fn exchange(endpoint: &Endpoint, message: Bytes) -> Result<u64, NotAccepted> {
    let later = |e: &(dyn std::error::Error + 'static)| NotAccepted::Later(with_causes(e));
    let stream = TcpStream::connect((endpoint.host(), endpoint.port())).await.map_err(|e| later(&e))?;
    let request = Request::post(endpoint.path())
        .header(header::HOST, endpoint.authority())
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(message))
        .map_err(|e| later(&e))?;
    let answer = http_client::send(stream, request).await.map_err(|e| later(&e))?;
    let status = answer.status();
    let body = answer.into_body().up_to(RESPONSE_BYTES).await;
    match status.as_u16() {
        200..=299 => {
            let answer: ExportResponse = serde_json::from_slice(&body).unwrap_or_default();
            Ok(answer.partial_success.rejected_spans.parse().unwrap_or(0))
        }
        // Retryable statuses of the protocol.
        429 | 502 | 503 | 504 => Err(NotAccepted::Later(format!("it answers {status}"))),
        _ => Err(NotAccepted::Refused(status)),
    }
}
