//! Body of a long response that ends with its session. A stream of events announces this with its last event.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Error of a response that ended early.
#[derive(Debug, thiserror::Error)]
#[error("the session has ended")]
struct SessionEnded;

/// Last event of a stream whose session has ended. The page then shows that, instead of looking for the daemon.
pub(super) const SIGNED_OUT: Bytes = Bytes::from_static(b"event: signed_out\ndata: {}\n\n");

/// A body that ends with its session.
#[derive(Debug)]
pub(super) struct SessionBody {
    body: Body,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Last bytes when the session ends; none for a body that must not look complete.
    last: Option<Bytes>,
    is_over: bool,
}

impl SessionBody {
    pub(super) fn new(body: Body, ended: &CancellationToken, last: Option<Bytes>) -> Self {
        SessionBody { body, ended: Box::pin(ended.clone().cancelled_owned()), last, is_over: false }
    }
}

impl hyper::body::Body for SessionBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.ended.as_mut().poll(cx).is_ready() {
            self.is_over = true;
            // An error closes the connection, so that a cut body does not look complete.
            let last = self.last.take().ok_or_else(|| axum::Error::new(SessionEnded));
            return Poll::Ready(Some(last.map(Frame::data)));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;

    fn open() -> Body {
        Body::new(StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, axum::Error>>()))
    }

    #[tokio::test]
    async fn a_stream_says_that_its_session_has_ended_and_a_file_is_cut_off() {
        let session = CancellationToken::new();
        let stream = SessionBody::new(open(), &session, Some(SIGNED_OUT));
        let file = SessionBody::new(open(), &session, None);
        session.cancel();
        assert_eq!(stream.collect().await.unwrap().to_bytes(), SIGNED_OUT);
        assert!(file.collect().await.is_err());
    }
}
