//! Copies bytes between a worker and a server in both directions.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

use super::meter::Passage;

/// Longest idle time. A provider of models may need minutes before the first byte of its reply.
const IDLE: Duration = Duration::from_mins(15);
/// Size of a read in each direction, in bytes.
const CHUNK: usize = 8 << 10;

/// Time of the last byte in either direction.
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

    /// Waits until no byte has come for [`IDLE`].
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

/// Copies until both sides have closed their direction, a side fails, a budget is spent, or no byte has come for
/// [`IDLE`].
pub(super) async fn relay(
    worker: impl AsyncRead + AsyncWrite + Unpin,
    server: impl AsyncRead + AsyncWrite + Unpin,
    passage: &Passage,
) {
    let activity = Activity::now();
    let ((worker_out, worker_in), (server_out, server_in)) =
        (tokio::io::split(worker), tokio::io::split(server));
    let up = pump(worker_out, server_in, &activity, |bytes| {
        passage.sent(bytes);
        passage.is_over()
    });
    let down = pump(server_out, worker_in, &activity, |bytes| {
        passage.received(bytes);
        passage.is_over()
    });
    tokio::select! {
        // Each arm ends the connection, so bytes in the buffer of the cancelled copy have no receiver.
        _ = async { tokio::try_join!(up, down) } => {}
        () = activity.idle() => {}
    }
}

/// Copies one direction to its end, then shuts down the other side. `is_over` gets the number of copied bytes, and is
/// true once a budget is spent.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    activity: &Activity,
    is_over: impl Fn(usize) -> bool,
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
        if is_over(length) {
            return Err(io::Error::other("a budget is spent"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kernel::{Balance, Quotas, SharedQuotas};

    use super::super::meter::Meter;
    use super::super::tally::Tally;
    use super::*;

    /// Makes a passage, with a budget of bytes if given, and the tally of its traffic.
    async fn passage(bytes: Option<u64>) -> (Passage, Arc<Tally>) {
        let budgets = kernel::Budgets {
            per_run: kernel::Budget { bytes, ..kernel::Budget::default() },
            ..kernel::Budgets::default()
        };
        let mut quotas = Quotas::default();
        quotas.budgets = budgets;
        let quotas = SharedQuotas::new(quotas);
        let tally = Arc::new(Tally::default());
        let board = "00000000-0000-4000-8000-000000000000".parse().unwrap();
        let meter = Meter::new(
            board,
            Arc::clone(&tally),
            quotas,
            Arc::default(),
            Arc::new(|| Ok(Balance::default())),
        );
        let mut passage = meter.take("a.example:443").await.ok().unwrap();
        passage.reached();
        (passage, tally)
    }

    #[tokio::test]
    async fn both_directions_are_copied_and_counted_until_both_have_ended() {
        let ((mut worker, near), (far, mut server)) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let (passage, tally) = passage(None).await;
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
        let ((), text) = tokio::join!(relay(near, far, &passage), talk);
        assert_eq!(text, "question and answer");
        assert_eq!((tally.figures().sent_bytes, tally.figures().received_bytes), (8, 19));
    }

    #[tokio::test]
    async fn a_tunnel_ends_when_the_bytes_of_its_budget_are_spent() {
        let ((mut worker, near), (far, server)) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let (passage, tally) = passage(Some(100)).await;
        let (mut sink, _kept) = tokio::io::split(server);
        let talk = async {
            let mut all = Vec::new();
            let send = async { while worker.write_all(&[1; 10]).await.is_ok() {} };
            let ((), read) = tokio::join!(send, sink.read_to_end(&mut all));
            read.map(|_| all.len())
        };
        let ((), read) = tokio::join!(relay(near, far, &passage), talk);
        assert!(read.unwrap() >= 100 && tally.figures().sent_bytes < 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_on_which_nothing_comes_ends() {
        let ((worker, near), (far, server)) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let (passage, _) = passage(None).await;
        let start = Instant::now();
        relay(near, far, &passage).await;
        assert!(start.elapsed() >= IDLE && start.elapsed() < IDLE * 2);
        drop((worker, server));
    }
}
