//! A tunnel to the host of a broker, which ends here: TLS with a certificate of the run's own authority, one request inside it, and
//! the broker behind that.
//!
//! What is inside is read as the same request by this proxy and by the host: it names the host of the tunnel, has one length, and is
//! not for another proxy.

use std::io::{self, Cursor};
use std::sync::Arc;

use policies::Target;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use super::answer::answer;
use super::broker;
use super::head;
use super::terms::Terms;

/// Serves one request inside a tunnel. `ahead` is what came behind the request for it.
pub(super) async fn serve(
    mut worker: impl AsyncRead + AsyncWrite + Unpin,
    ahead: Vec<u8>,
    target: &Target,
    config: Arc<ServerConfig>,
    terms: &Terms,
) {
    if worker.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n").await.is_err() {
        return;
    }
    let (reads, writes) = tokio::io::split(worker);
    let stream = tokio::io::join(Cursor::new(ahead).chain(reads), writes);
    let accept = tokio::time::timeout(head::TIME, TlsAcceptor::from(config).accept(stream)).await;
    let mut inside = match accept.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(inside) => inside,
        Err(error) => {
            // A program that does not read the variables with the certificate: it is the worker that says so.
            tracing::debug!(host = %target, %error, "tunnel_not_trusted");
            return;
        }
    };
    match head::read_inside(&mut inside, target).await {
        Ok(head) => broker::serve(inside, head, Some(target), terms).await,
        Err(error) => answer(inside, error.status(), &error.to_string()).await,
    }
}
