//! Serves one connection of a worker: reads the request, checks it, and passes it to the server.

use std::io::Cursor;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::broker::{self, Aim};
use super::head::{self, HeadError, RequestHead, RequestKind};
use super::host_check;
use super::meter::NotAdmitted;
use super::own_response::{refuse, respond};
use super::reach::{Unreached, reach};
use super::relay::relay;
use super::terms::{ProxyTerms, RETRY_AFTER, UNKNOWN, over_budget, refused};
use super::tls_tunnel;

/// Reply with which a tunnel begins.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";

/// Serves a connection.
pub(super) async fn serve(mut worker: impl AsyncRead + AsyncWrite + Unpin, terms: &ProxyTerms) {
    let RequestHead { target, kind, rest } = match head::read(&mut worker).await {
        Ok(request) => request,
        Err(error) => return respond_itself(worker, terms, error.status(), &error.to_string()).await,
    };
    match kind {
        RequestKind::Tunnel if target.is_own_proxy() => return serve_own_tunnel(worker, rest, terms).await,
        RequestKind::Brokered => return broker::serve(worker, rest, Aim::Path, terms).await,
        RequestKind::Clear => return broker::serve(worker, rest, Aim::Clear(&target), terms).await,
        RequestKind::Tunnel => {}
    }
    // A broker's host: the tunnel ends here, so that the broker can add its header.
    if let Some(config) = terms.certified(&target) {
        return tls_tunnel::serve(worker, rest, &target, config, terms).await;
    }
    // The name is checked before it is resolved: a DNS query for a refused name could carry data out.
    if let Err(refusal) = host_check::check_target(&terms.policy, &target) {
        return refuse(worker, &refused(terms, &refusal)).await;
    }
    let mut metered = match terms.meter.admit(&target.to_string()).await {
        Ok(metered) => metered,
        Err(NotAdmitted::Spent(spent)) => {
            return respond_itself(worker, terms, "402 Payment Required", &over_budget(terms, &spent)).await;
        }
        Err(NotAdmitted::Unknown) => {
            let status = format!("503 Service Unavailable\r\nRetry-After: {RETRY_AFTER}");
            return respond_itself(worker, terms, &status, UNKNOWN).await;
        }
    };
    let reached = reach(&terms.policy, &terms.lookups, &target).await;
    terms.note_attempt(&target, &reached);
    let mut server = match reached {
        Ok(server) => server,
        Err(Unreached::Refused(refusal)) => {
            return refuse(worker, &refused(terms, &refusal)).await;
        }
        Err(unreached) => {
            let (status, why) = unreached.status_and_reason();
            let status = if status == 504 { "504 Gateway Timeout" } else { "502 Bad Gateway" };
            return respond_itself(worker, terms, status, &format!("{target} {why}")).await;
        }
    };
    // From here on the request counts; a failure before returns the charge.
    metered.reached();
    if worker.write_all(ESTABLISHED).await.is_err() {
        return;
    }
    if server.write_all(&rest).await.is_ok() {
        metered.sent(rest.len());
        relay(worker, server, &metered).await;
    }
}

/// Serves one request inside a tunnel to the proxy itself: some programs reach every host by a tunnel, the host of a
/// broker's variable too. `ahead` is input that came directly after the CONNECT request.
async fn serve_own_tunnel(
    mut worker: impl AsyncRead + AsyncWrite + Unpin,
    ahead: Vec<u8>,
    terms: &ProxyTerms,
) {
    if worker.write_all(ESTABLISHED).await.is_err() {
        return;
    }
    let (reads, writes) = tokio::io::split(worker);
    let mut inside = tokio::io::join(Cursor::new(ahead).chain(reads), writes);
    match head::read(&mut inside).await {
        Ok(RequestHead { kind: RequestKind::Brokered, rest, .. }) => {
            broker::serve(inside, rest, Aim::Path, terms).await;
        }
        // A tunnel in a tunnel would have no end.
        Ok(RequestHead { kind: RequestKind::Tunnel | RequestKind::Clear, .. }) => {
            let error = HeadError::NoProxyRequest;
            respond_itself(inside, terms, error.status(), &error.to_string()).await;
        }
        Err(error) => respond_itself(inside, terms, error.status(), &error.to_string()).await,
    }
}

/// Sends a reply of the proxy itself in the place of the host, and closes the connection.
async fn respond_itself(
    worker: impl AsyncRead + AsyncWrite + Unpin,
    terms: &ProxyTerms,
    status: &str,
    text: &str,
) {
    terms.traffic.responded_itself();
    respond(worker, status, text).await;
}
