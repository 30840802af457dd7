//! One request and its answer, over either transport.

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;

use crate::invocation::Address;

/// How long a look at who listens may take.
const CONNECTED: Duration = Duration::from_secs(2);

/// An answer over any transport.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// Why no answer came.
pub(super) enum Trouble {
    /// Nobody listens.
    Absent(String),
    /// Somebody listens, and not to this user.
    Denied(String),
    /// Somebody listens, and the exchange broke.
    Broken(String),
}

/// Sends a request and waits for its answer.
pub(super) async fn exchange(address: &Address, request: Request<Full<Bytes>>) -> Result<Answer, Trouble> {
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

fn absent_or_broken(error: &std::io::Error, place: &str) -> Trouble {
    let reason = format!("{place}: {error}");
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => Trouble::Absent(reason),
        std::io::ErrorKind::PermissionDenied => Trouble::Denied(reason),
        _ => Trouble::Broken(reason),
    }
}

async fn talk(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Answer, Trouble> {
    let broken = |e: hyper::Error| Trouble::Broken(e.to_string());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(broken)?.to_bytes();
    drop(sender);
    driver.abort();
    Ok(Answer { status, body })
}

/// The process that listens at a socket: the one that has made it, which may be a service manager. None where nobody listens.
pub(super) async fn listener(path: &Path) -> Option<i32> {
    let stream = tokio::time::timeout(CONNECTED, tokio::net::UnixStream::connect(path)).await.ok()?.ok()?;
    stream.peer_cred().ok()?.pid()
}

/// Whether somebody listens at a socket. One that is closed to this user counts: the request itself is then refused with the reason.
pub(super) async fn is_listened_at(path: &Path) -> bool {
    match tokio::time::timeout(CONNECTED, tokio::net::UnixStream::connect(path)).await {
        Ok(Err(e)) => !matches!(absent_or_broken(&e, ""), Trouble::Absent(_)),
        Ok(Ok(_)) | Err(_) => true,
    }
}

/// Returns whether the listener answers at all within this time.
pub(super) async fn answers(address: &Address, within: Duration) -> bool {
    let request = Request::get("/").header(header::HOST, "supervisor").body(Full::new(Bytes::new()));
    let Ok(request) = request else { return true };
    matches!(tokio::time::timeout(within, exchange(address, request)).await, Ok(Ok(_)))
}
