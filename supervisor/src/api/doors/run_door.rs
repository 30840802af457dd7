//! The door of one run. Nobody else reaches it, so what its run does too often waits in its own queue, in the kernel.
//!
//! Nothing is refused here for being too fast: as long as a run has used up what it may open, rests after a refused
//! request, or has a request under way on each of its connections, its listener is not polled. Its next connections then
//! wait in the backlog, at no cost to the daemon and to no other run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::{BoardId, RunId};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use super::account::{BURST_OF_CONNECTIONS, Bucket};
use super::bounds::{Bound, Group};
use super::crowd::{Entry, Seat};
use super::serve::{Door, PAUSE};
use crate::api::identity::Peer;

/// How long a listener is not polled whose run has used up what it may open. Longer than it takes for one more, so that a
/// run which goes on costs few wake-ups.
const REFILL: Duration = Duration::from_millis(100);

impl Door {
    /// Receives the connections of one run until it is stopped, one in each turn of the runtime: the listeners that are
    /// ready take turns.
    pub(super) async fn attend_run(
        self: Arc<Self>,
        listener: UnixListener,
        run: (BoardId, RunId),
        stop: CancellationToken,
    ) {
        let receive = async {
            let mut bucket = Bucket::full(self.rate(), BURST_OF_CONNECTIONS, Instant::now());
            loop {
                self.wait_for_budget(run, &mut bucket).await;
                match listener.accept().await {
                    Ok((stream, _)) => {
                        bucket.take();
                        let seat = self.seat(run).await;
                        self.serve(stream, seat, Peer::Run(run.0, run.1));
                    }
                    Err(error) => {
                        tracing::warn!(%error, door = ?run, "not_accepted");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            // Cancel-safe: a connection that is not accepted stays in the backlog, and one that has no seat yet is closed.
            () = receive => {}
            () = stop.cancelled() => {}
        }
    }

    /// Returns when the run may open a connection.
    async fn wait_for_budget(&self, run: (BoardId, RunId), bucket: &mut Bucket) {
        loop {
            if let Some(until) = self.shared.front.gate.rests_until(run) {
                tokio::time::sleep_until(until.into()).await;
            }
            let rate = self.rate();
            if bucket.has_some(rate, Instant::now()) {
                return;
            }
            self.note(Group::Run(run.0, run.1), Bound::Rate(rate));
            tokio::time::sleep(REFILL).await;
        }
    }

    /// Returns a seat for a connection of the run, as soon as there is one.
    async fn seat(&self, run: (BoardId, RunId)) -> Seat {
        let group = Group::Run(run.0, run.1);
        loop {
            // Before the look: who leaves after that look is heard.
            let left = self.crowd.left();
            match self.crowd.enter(group, self.bounds(group), Instant::now()) {
                Entry::In(seat, met) => {
                    if let Some(bound) = met {
                        self.note(group, bound);
                    }
                    return seat;
                }
                Entry::Full(bound) => {
                    self.note(group, bound);
                    left.await;
                }
            }
        }
    }
}
