//! A reply on its way out. It counts against its caller until it has been read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};

use super::crowd::Busy;
use super::gate::{Pass, Reserved};
use crate::failure::Failure;

/// So much of a reply goes to the connection at a time. What it has taken, a few of these, counts no more.
const PIECE: usize = 32 << 10;

/// Marks a reply that is read from a file as it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streamed;

/// The body of a reply, with what is reserved for it.
#[derive(Debug)]
pub(in super::super) struct Outgoing {
    source: Source,
    _pass: Option<Arc<Pass>>,
    _reserved: Option<Reserved>,
    _busy: Option<Busy>,
}

#[derive(Debug)]
enum Source {
    Whole(Bytes),
    Stream(Body),
}

impl Outgoing {
    /// Charges a reply to the caller of its request. One that is too much beside what the caller has not read yet is
    /// refused.
    pub(in super::super) async fn charge(
        response: Response,
        pass: Option<Arc<Pass>>,
        busy: Option<Busy>,
    ) -> Response {
        let (parts, body) = response.into_parts();
        let charged = if parts.extensions.get::<Streamed>().is_some() {
            Ok((parts, Source::Stream(body), None))
        } else {
            match body.collect().await {
                Ok(whole) => {
                    let bytes = whole.to_bytes();
                    reserve(pass.as_deref(), &bytes).map(|reserved| (parts, Source::Whole(bytes), reserved))
                }
                Err(error) => Err(Failure::failed(format!("the reply was not made: {error}"))),
            }
        };
        match charged {
            Ok((parts, source, reserved)) => {
                let body = Outgoing { source, _pass: pass, _reserved: reserved, _busy: busy };
                Response::from_parts(parts, Body::new(body))
            }
            Err(failure) => failure.into_response(),
        }
    }
}

fn reserve(pass: Option<&Pass>, bytes: &Bytes) -> Result<Option<Reserved>, Failure> {
    pass.map(|pass| pass.reserve(bytes.len())).transpose()
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.source {
            Source::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Whole(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE));
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Source::Stream(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(bytes) => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Source::Stream(body) => body.size_hint(),
        }
    }
}
