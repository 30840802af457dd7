//! Responses of the proxy itself, on a connection that ends with the response.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Time for a client to read such a response.
const READ_TIME: Duration = Duration::from_secs(5);

/// Header of a response with which the proxy refuses a host, which tells it apart from a refusal by the service.
pub const DENIED: &str = "supervisor-denied";

/// Sends the refusal of a host, and closes the connection.
pub(super) async fn refuse(worker: impl AsyncRead + AsyncWrite + Unpin, text: &str) {
    respond(worker, &format!("403 Forbidden\r\n{DENIED}: host"), text).await;
}

/// Sends a response of the proxy itself, and closes the connection.
pub(super) async fn respond(mut worker: impl AsyncRead + AsyncWrite + Unpin, status: &str, text: &str) {
    let text = format!("{text}\n");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    let sent = async {
        worker.write_all(response.as_bytes()).await?;
        worker.shutdown().await?;
        // Unread input would reset the connection and destroy the response, so the input is drained.
        let mut rest = [0; 1024];
        while worker.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    drop(tokio::time::timeout(READ_TIME, sent).await);
}
