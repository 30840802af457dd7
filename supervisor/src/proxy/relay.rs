//! Bytes in both directions between a worker and a server, until both have ended or nothing has come for long.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

use super::tally::Tally;

/// How long nothing may come. A provider may think for minutes before the first byte of its answer.
const IDLE: Duration = Duration::from_mins(15);
/// How much is read at once, in bytes, in each direction.
const CHUNK: usize = 8 << 10;

/// When something last came.
#[derive(Debug)]
pub(super) struct Activity(Mutex<Instant>);

impl Activity {
    pub(super) fn now() -> Self {
        Activity(Mutex::new(Instant::now()))
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(super) async fn idle(&self) {
        loop {
            let end = self.last() + IDLE;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// Copies until both sides have ended, one of them fails, or nothing has come for [`IDLE`].
pub(super) async fn relay(
    worker: impl AsyncRead + AsyncWrite + Unpin,
    server: impl AsyncRead + AsyncWrite + Unpin,
    tally: &Tally,
) {
    let activity = Activity::now();
    let ((worker_out, worker_in), (server_out, server_in)) =
        (tokio::io::split(worker), tokio::io::split(server));
    let up = pump(worker_out, server_in, &activity, |bytes| tally.sent(bytes));
    let down = pump(server_out, worker_in, &activity, |bytes| tally.received(bytes));
    tokio::select! {
        // Either arm ends the connection: what is cancelled with it has nobody to go to.
        _ = async { tokio::try_join!(up, down) } => {}
        () = activity.idle() => {}
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    activity: &Activity,
    count: impl Fn(usize),
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = from.read(&mut buffer).await?;
        activity.note();
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(buffer.get(..length).unwrap_or_default()).await?;
        activity.note();
        count(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_directions_are_copied_and_counted_until_both_have_ended() {
        let ((mut worker, near), (far, mut server)) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let tally = Tally::default();
        let talk = async {
            worker.write_all(b"question").await.unwrap();
            worker.shutdown().await.unwrap();
            let mut text = String::new();
            server.read_to_string(&mut text).await.unwrap();
            server.write_all(format!("{text} and answer").as_bytes()).await.unwrap();
            drop(server);
            text.clear();
            worker.read_to_string(&mut text).await.unwrap();
            text
        };
        let ((), text) = tokio::join!(relay(near, far, &tally), talk);
        assert_eq!(text, "question and answer");
        assert_eq!((tally.figures().sent_bytes, tally.figures().received_bytes), (8, 19));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_on_which_nothing_comes_ends() {
        let ((worker, near), (far, server)) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let start = Instant::now();
        relay(near, far, &Tally::default()).await;
        assert!(start.elapsed() >= IDLE && start.elapsed() < IDLE * 2);
        drop((worker, server));
    }
}
