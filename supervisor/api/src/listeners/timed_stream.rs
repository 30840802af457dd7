//! Stream that fails if its reader takes the output too slowly.
//!
//! Vectored writes are not offered. The server then copies its output piece by piece, and does not keep a whole reply
//! whose last piece waits for the reader.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::transfer_rate::TransferRate;

/// Stream with a time limit on its writes.
#[derive(Debug)]
pub(super) struct TimedStream<S> {
    stream: S,
    rate: TransferRate,
}

impl<S> TimedStream<S> {
    /// Wraps a stream.
    pub(super) fn new(stream: S) -> Self {
        TimedStream { stream, rate: TransferRate::default() }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    fn timed(&mut self, cx: &mut Context<'_>, wrote: Poll<Result<usize>>) -> Poll<Result<usize>> {
        match wrote {
            Poll::Ready(Ok(bytes)) => {
                self.rate.moved(bytes);
                Poll::Ready(Ok(bytes))
            }
            Poll::Pending if self.rate.poll_too_slow(cx).is_ready() => {
                Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the reply was read too slowly")))
            }
            other => other,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        // Input means another request, so the previous reply was taken. During a reply at most one read is pending.
        if buf.filled().len() > before {
            self.rate.restart();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.timed(cx, wrote)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_reads_nothing_is_given_up_and_a_read_in_time_goes_on() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut near = TimedStream::new(near);
        near.write_all(&[0; 16]).await.unwrap();
        let error = near.write_all(&[0; 16]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let mut taken = [0; 16];
        tokio::io::AsyncReadExt::read_exact(&mut far, &mut taken).await.unwrap();
    }
}
