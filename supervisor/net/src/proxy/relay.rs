//! Copies bytes between a worker and a server in both directions.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

use super::meter::MeteredRequest;

/// Longest idle time. A provider of models may need minutes before the first byte of its reply.
const IDLE: Duration = Duration::from_mins(15);
/// Size of a read in each direction, in bytes.
const CHUNK: usize = 8 << 10;

/// Time of the last byte in either direction.
#[derive(Debug)]
pub(super) struct LastTraffic(Mutex<Instant>);

impl LastTraffic {
    pub(super) fn now() -> Self {
        LastTraffic(Mutex::new(Instant::now()))
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
    metered: &MeteredRequest,
) {
    let activity = LastTraffic::now();
    let ((worker_out, worker_in), (server_out, server_in)) =
        (tokio::io::split(worker), tokio::io::split(server));
    let up = pump(worker_out, server_in, &activity, |bytes| {
        metered.sent(bytes);
        metered.is_over()
    });
    let down = pump(server_out, worker_in, &activity, |bytes| {
        metered.received(bytes);
        metered.is_over()
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
    activity: &LastTraffic,
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
    use super::super::traffic::Traffic;
    use super::*;

    /// Makes a metered, with a budget of bytes if given, and the traffic of its traffic.
    async fn metered(bytes: Option<u64>) -> (MeteredRequest, Arc<Traffic>) {
        let budgets = kernel::Budgets {
            per_run: kernel::Budget { bytes, ..kernel::Budget::default() },
            ..kernel::Budgets::default()
        };
        let mut quotas = Quotas::default();
        quotas.budgets = budgets;
        let quotas = SharedQuotas::new(quotas);
        let traffic = Arc::new(Traffic::default());
        let board = "00000000-0000-4000-8000-000000000000".parse().unwrap();
        let meter = Meter::new(
            board,
            Arc::clone(&traffic),
            quotas,
            Arc::default(),
            Arc::new(|| Ok(Balance::default())),
        );
        let mut metered = meter.admit("a.example:443").await.ok().unwrap();
        metered.reached();
        (metered, traffic)
    }

    #[tokio::test]
    async fn both_directions_are_copied_and_counted_until_both_have_ended() {
        let ((mut worker, near), (far, mut server)) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let (metered, traffic) = metered(None).await;
        let exchange = async {
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
        let ((), text) = tokio::join!(relay(near, far, &metered), exchange);
        assert_eq!(text, "question and answer");
        assert_eq!((traffic.figures().sent_bytes, traffic.figures().received_bytes), (8, 19));
    }

    #[tokio::test]
    async fn a_tunnel_ends_when_the_bytes_of_its_budget_are_spent() {
        let ((mut worker, near), (far, server)) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let (metered, traffic) = metered(Some(100)).await;
        let (mut sink, _kept) = tokio::io::split(server);
        let exchange = async {
            let mut all = Vec::new();
            let send = async { while worker.write_all(&[1; 10]).await.is_ok() {} };
            let ((), read) = tokio::join!(send, sink.read_to_end(&mut all));
            read.map(|_| all.len())
        };
        let ((), read) = tokio::join!(relay(near, far, &metered), exchange);
        assert!(read.unwrap() >= 100 && traffic.figures().sent_bytes < 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_on_which_nothing_comes_ends() {
        let ((worker, near), (far, server)) = (tokio::io::duplex(64), tokio::io::duplex(64));
        let (metered, _) = metered(None).await;
        let start = Instant::now();
        relay(near, far, &metered).await;
        assert!(start.elapsed() >= IDLE && start.elapsed() < IDLE * 2);
        drop((worker, server));
    }
}
