//! HTTP/1 client for one request over a connection of its own, so no two runs, tenants or identities share a connection.
//! Redirects are not followed.
//!
//! Callers connect themselves: they differ in the addresses that they accept, in their time limits and in their errors.
//! The pooling client of hyper-util does not fit: its connector outlives the request and cannot borrow the state of the
//! caller, its connections outlive the response, and its tunnels discard the reason of a proxy that refuses.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::task::AbortOnDropHandle;

/// Connection to a server.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Body of a response, with the task that reads it from the connection. The connection lasts until the body is read or
/// dropped.
#[derive(Debug)]
pub struct ResponseBody {
    incoming: Incoming,
    _driver: AbortOnDropHandle<hyper::Result<()>>,
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.incoming).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl ResponseBody {
    /// Reads the body to its end; empty if it has more than `most` bytes or breaks off.
    pub async fn up_to(self, most: usize) -> Bytes {
        let read = Limited::new(self, most).collect().await;
        read.map(http_body_util::Collected::to_bytes).unwrap_or_default()
    }
}

/// Makes a request for the server of an address: its path is the target, and its authority the host.
pub fn request(method: Method, uri: &Uri, headers: HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    *request.headers_mut() = headers;
    if let Some(host) = uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        request.headers_mut().insert(HOST, host);
    }
    request
}

/// Sends a request over a connection, and returns the response once its head has arrived.
pub async fn send<B>(
    stream: impl Stream + 'static,
    request: Request<B>,
) -> hyper::Result<Response<ResponseBody>>
where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    send_with(&http1::Builder::new(), stream, request).await
}

/// Sends a request with other limits on the head of the response.
pub(crate) async fn send_with<B>(
    limits: &http1::Builder,
    stream: impl Stream + 'static,
    request: Request<B>,
) -> hyper::Result<Response<ResponseBody>>
where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    let (mut sender, connection) = limits.handshake(TokioIo::new(stream)).await?;
    // Aborted with the body of the response, or on any error before.
    let driver = AbortOnDropHandle::new(tokio::spawn(connection.with_upgrades()));
    let response = sender.send_request(request).await?;
    Ok(response.map(|incoming| ResponseBody { incoming, _driver: driver }))
}

/// Encrypts a connection to a host: a name, or an address with or without brackets.
pub async fn encrypted<S: Stream>(
    host: &str,
    trust: Arc<ClientConfig>,
    stream: S,
) -> io::Result<TlsStream<S>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare).map_err(io::Error::other)?;
    TlsConnector::from(trust).connect(name, stream).await
}
