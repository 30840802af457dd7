//! Sends a reply, which counts for its caller until it has been read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};

use super::connection_table::Busy;
use super::request_admission::{RequestPermit, Reserved};
use base::failure::Failure;

/// Size of a piece of a reply, in bytes. The few pieces that the connection has taken no longer count.
const PIECE: usize = 32 << 10;

/// Marks a reply that is read from a file while it is sent.
#[derive(Clone, Copy, Debug)]
pub struct Streamed;

/// Body of a reply, with its reservations.
#[derive(Debug)]
pub(in super::super) struct OutgoingBody {
    source: BodySource,
    _permit: Option<Arc<RequestPermit>>,
    _reserved: Option<Reserved>,
    _busy: Option<Busy>,
}

#[derive(Debug)]
enum BodySource {
    Whole(Bytes),
    Stream(Body),
}

impl OutgoingBody {
    /// Charges a reply to the caller. A reply that exceeds the caller's limit together with its unread replies is
    /// refused.
    pub(in super::super) async fn charge(
        response: Response,
        permit: Option<Arc<RequestPermit>>,
        busy: Option<Busy>,
    ) -> Response {
        let (parts, body) = response.into_parts();
        let charged = if parts.extensions.get::<Streamed>().is_some() {
            Ok((parts, BodySource::Stream(body), None))
        } else {
            match body.collect().await {
                Ok(whole) => {
                    let bytes = whole.to_bytes();
                    reserve(permit.as_deref(), &bytes)
                        .map(|reserved| (parts, BodySource::Whole(bytes), reserved))
                }
                Err(error) => Err(Failure::failed(format!("the reply was not made: {error}"))),
            }
        };
        match charged {
            Ok((parts, source, reserved)) => {
                let body = OutgoingBody { source, _permit: permit, _reserved: reserved, _busy: busy };
                Response::from_parts(parts, Body::new(body))
            }
            Err(failure) => failure.into_response(),
        }
    }
}

fn reserve(permit: Option<&RequestPermit>, bytes: &Bytes) -> Result<Option<Reserved>, Failure> {
    permit.map(|permit| permit.reserve(bytes.len())).transpose()
}

impl hyper::body::Body for OutgoingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.source {
            BodySource::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            BodySource::Whole(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE));
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            BodySource::Stream(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            BodySource::Whole(bytes) => bytes.is_empty(),
            BodySource::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Whole(bytes) => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            BodySource::Stream(body) => body.size_hint(),
        }
    }
}
