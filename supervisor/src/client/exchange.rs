//! Exchange of one request and its response, over either transport.

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{Request, StatusCode, header};

use base::invocation::Address;
use net::http_client::{self, Stream};

/// Time limit of a connection made to look for a listener.
const CONNECTED: Duration = Duration::from_secs(2);

/// Response over either transport.
pub(super) struct DaemonResponse {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// Reason for a missing response.
pub(super) enum ExchangeError {
    /// No process listens.
    Absent(String),
    /// A process listens, and not for this user.
    Denied(String),
    /// A process listens, and the exchange failed.
    Broken(String),
}

/// Sends a request, and waits for its response.
pub(super) async fn exchange(
    address: &Address,
    request: Request<Full<Bytes>>,
) -> Result<DaemonResponse, ExchangeError> {
    match address {
        Address::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path)
                .await
                .map_err(|e| absent_or_broken(&e, &path.display().to_string()))?;
            talk(stream, request).await
        }
        Address::Loopback(port) => {
            let stream = tokio::net::TcpStream::connect(("127.0.0.1", *port))
                .await
                .map_err(|e| absent_or_broken(&e, &format!("127.0.0.1:{port}")))?;
            talk(stream, request).await
        }
    }
}

fn absent_or_broken(error: &std::io::Error, place: &str) -> ExchangeError {
    let reason = format!("{place}: {error}");
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => ExchangeError::Absent(reason),
        std::io::ErrorKind::PermissionDenied => ExchangeError::Denied(reason),
        _ => ExchangeError::Broken(reason),
    }
}

async fn talk(
    stream: impl Stream + 'static,
    request: Request<Full<Bytes>>,
) -> Result<DaemonResponse, ExchangeError> {
    let broken = |e: hyper::Error| ExchangeError::Broken(e.to_string());
    let response = http_client::send(stream, request).await.map_err(broken)?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(broken)?.to_bytes();
    Ok(DaemonResponse { status, body })
}

/// Returns the pid of the process that created a listening socket, which may be a service manager. None if no process
/// listens.
pub(super) async fn listener(path: &Path) -> Option<i32> {
    let stream = tokio::time::timeout(CONNECTED, tokio::net::UnixStream::connect(path)).await.ok()?.ok()?;
    stream.peer_cred().ok()?.pid()
}

/// Returns true if a process listens at a socket. A socket that is closed to this user counts: the request itself is
/// then refused with the reason.
pub(super) async fn is_listened_at(path: &Path) -> bool {
    match tokio::time::timeout(CONNECTED, tokio::net::UnixStream::connect(path)).await {
        Ok(Err(e)) => !matches!(absent_or_broken(&e, ""), ExchangeError::Absent(_)),
        Ok(Ok(_)) | Err(_) => true,
    }
}

/// Returns true if the listener responds at all within this time.
pub(super) async fn answers(address: &Address, within: Duration) -> bool {
    let request = Request::get("/").header(header::HOST, "supervisor").body(Full::new(Bytes::new()));
    let Ok(request) = request else { return true };
    matches!(tokio::time::timeout(within, exchange(address, request)).await, Ok(Ok(_)))
}
