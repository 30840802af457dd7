//! Terminates the TLS of a tunnel to a broker's host, with a certificate of the run's own authority, and passes the
//! one request inside to the broker.
//!
//! The proxy and the host must read the inner request alike: it must name the tunnel's host, have a single length,
//! and not be addressed to another proxy.
//!
//! See decision 0194.

use std::io::{self, Cursor};
use std::sync::Arc;

use policies::Target;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use super::broker::{self, Aim};
use super::head;
use super::own_response::respond;
use super::terms::ProxyTerms;

/// Serves one request inside a tunnel. `ahead` is input that came directly after the CONNECT request.
pub(super) async fn serve(
    mut worker: impl AsyncRead + AsyncWrite + Unpin,
    ahead: Vec<u8>,
    target: &Target,
    config: Arc<ServerConfig>,
    terms: &ProxyTerms,
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
            // The program ignores the variables that name the certificate. The program reports the error itself.
            tracing::debug!(host = %target, %error, "tunnel_not_trusted");
            return;
        }
    };
    match head::read_inside(&mut inside, target).await {
        Ok(head) => broker::serve(inside, head, Aim::Tunnel(target), terms).await,
        Err(error) => respond(inside, error.status(), &error.to_string()).await,
    }
}
