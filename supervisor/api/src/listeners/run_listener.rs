//! Listener of one run. Only that run can reach it, so excess connections wait in the kernel's queue of this run.
//!
//! No connection is refused here for its rate. The listener is not polled while the run has used up its connection
//! rate, is paused after a refused request, or has a request in progress on each of its connections. Further
//! connections then wait in the backlog, at no cost to the daemon or other runs.
//!
//! See decision 0047.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::{BoardId, RunId};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use super::connection_limits::{ConnectionGroup, ConnectionLimit};
use super::connection_table::{Admitted, ConnectionPermit};
use super::serve::{BoundedListener, PAUSE};
use super::usage::{BURST_OF_CONNECTIONS, Bucket};
use crate::identity::Peer;

/// Time for which the listener is not polled once the connection rate is used up. Longer than the refill of one
/// token, so that a persistent run causes few wake-ups.
const REFILL: Duration = Duration::from_millis(100);

impl BoundedListener {
    /// Accepts the connections of one run until it is stopped. Yields after each, so that ready listeners take turns.
    pub(super) async fn accept_run(
        self: Arc<Self>,
        listener: UnixListener,
        board: BoardId,
        run: RunId,
        stop: CancellationToken,
    ) {
        let receive = async {
            let mut bucket = Bucket::full(self.rate(), BURST_OF_CONNECTIONS, Instant::now());
            loop {
                self.wait_for_budget(board, run, &mut bucket).await;
                match listener.accept().await {
                    Ok((stream, _)) => {
                        bucket.take();
                        let permit = self.permit(board, run).await;
                        self.serve(stream, permit, Peer::Run(board, run));
                    }
                    Err(error) => {
                        tracing::warn!(%error, listener = ?(board, run), "not_accepted");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            // Cancel-safe: a connection that is not accepted stays in the backlog, and a connection without an entry
            // in the table is closed.
            () = receive => {}
            () = stop.cancelled() => {}
        }
    }

    /// Waits until the run may open a connection.
    async fn wait_for_budget(&self, board: BoardId, run: RunId, bucket: &mut Bucket) {
        loop {
            if let Some(until) = self.shared.api.admission.rests_until((board, run)) {
                tokio::time::sleep_until(until.into()).await;
            }
            let rate = self.rate();
            if bucket.has_token(rate, Instant::now()) {
                return;
            }
            self.note(ConnectionGroup::Run(board, run), ConnectionLimit::Rate(rate));
            tokio::time::sleep(REFILL).await;
        }
    }

    /// Waits for a free entry in the connection table.
    async fn permit(&self, board: BoardId, run: RunId) -> ConnectionPermit {
        let group = ConnectionGroup::Run(board, run);
        loop {
            // Registered before the attempt, so that a connection that ends after the attempt is not missed.
            let left = self.connections.freed();
            match self.connections.admit(group, self.bounds(group), Instant::now()) {
                Admitted::In(permit, met) => {
                    if let Some(bound) = met {
                        self.note(group, bound);
                    }
                    return permit;
                }
                Admitted::Full(bound) => {
                    self.note(group, bound);
                    left.await;
                }
            }
        }
    }
}
