//! An answer of the proxy's own, on a connection that ends with it.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// How long an answer of the proxy's own may take to be read.
const ANSWER: Duration = Duration::from_secs(5);

/// The header of an answer by which this proxy refuses to connect to a host: it is not the service that has refused.
pub(crate) const DENIED: &str = "supervisor-denied";

/// Says that a host is refused, and closes the connection.
pub(super) async fn refuse(worker: impl AsyncRead + AsyncWrite + Unpin, text: &str) {
    answer(worker, &format!("403 Forbidden\r\n{DENIED}: host"), text).await;
}

/// Answers in the proxy's own name, and closes the connection.
pub(super) async fn answer(mut worker: impl AsyncRead + AsyncWrite + Unpin, status: &str, text: &str) {
    let text = format!("{text}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    let told = async {
        worker.write_all(answer.as_bytes()).await?;
        worker.shutdown().await?;
        // What was sent and is not read would reset the connection, and the answer with it.
        let mut rest = [0; 1024];
        while worker.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    drop(tokio::time::timeout(ANSWER, told).await);
}
