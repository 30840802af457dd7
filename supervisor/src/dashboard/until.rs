//! The body of a reply that ends with the session of its reader.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Why a reply ended before its end.
#[derive(Debug, thiserror::Error)]
#[error("the session has ended")]
struct Ended;

/// A body, until its session ends.
#[derive(Debug)]
pub(super) struct Until {
    body: Body,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Until {
    pub(super) fn new(body: Body, ended: &CancellationToken) -> Self {
        Until { body, ended: Box::pin(ended.clone().cancelled_owned()) }
    }
}

impl hyper::body::Body for Until {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended.as_mut().poll(cx).is_ready() {
            // An error closes the connection: what is cut off does not look whole.
            return Poll::Ready(Some(Err(axum::Error::new(Ended))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
