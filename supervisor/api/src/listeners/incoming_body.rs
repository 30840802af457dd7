//! Reads request bodies at a minimum rate, and drains what a handler leaves unread: a client that is still sending
//! would not see the response.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use kernel::limits::ATTACHMENT;

use super::transfer_rate::TransferRate;

/// Limit on drained bytes: twice the largest attachment.
const DRAINED: u64 = 2 * ATTACHMENT;
/// Time limit for draining.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// Error: the body arrived too slowly.
#[derive(Debug, thiserror::Error)]
#[error("it came too slowly")]
struct TooSlow;

/// Body of a request, shared with the handler that reads it.
#[derive(Debug)]
pub(in super::super) struct IncomingBody(Arc<Mutex<BodyReader>>);

/// The handler's view of the body.
#[derive(Debug)]
struct BorrowedBody(Arc<Mutex<BodyReader>>);

#[derive(Debug)]
struct BodyReader {
    body: Body,
    rate: TransferRate,
    over: bool,
}

impl IncomingBody {
    /// Takes the body of a request, and replaces it by a shared view.
    pub(in super::super) fn lend(request: Request) -> (Request, Self) {
        let (head, body) = request.into_parts();
        let shared = Arc::new(Mutex::new(BodyReader { body, rate: TransferRate::default(), over: false }));
        (Request::from_parts(head, Body::new(BorrowedBody(Arc::clone(&shared)))), IncomingBody(shared))
    }

    /// Drains the rest of the body.
    pub(in super::super) async fn drain(self) {
        let mut body = BorrowedBody(self.0);
        let mut left = DRAINED;
        let away = async {
            while let Some(Ok(frame)) = body.frame().await {
                let length = frame.data_ref().map_or(0, |piece| piece.len());
                left = left.saturating_sub(u64::try_from(length).unwrap_or(u64::MAX));
                if left == 0 {
                    return;
                }
            }
        };
        // Anything later is cut off with the connection.
        drop(tokio::time::timeout(DRAIN_TIME, away).await);
    }
}

impl hyper::body::Body for BorrowedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reader.over {
            return Poll::Ready(None);
        }
        match Pin::new(&mut reader.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                reader.rate.moved(frame.data_ref().map_or(0, |piece| piece.len()));
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(ended) => {
                reader.over = true;
                Poll::Ready(ended)
            }
            Poll::Pending => {
                ready!(reader.rate.poll_too_slow(cx));
                reader.over = true;
                Poll::Ready(Some(Err(axum::Error::new(TooSlow))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reader.over || reader.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).body.size_hint()
    }
}
