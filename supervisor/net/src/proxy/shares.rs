//! Shares of resources that all runs use together: connections and name look-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A number of places. No taker can occupy all of them, and each taker can always get one.
#[derive(Debug)]
pub(super) struct Shares {
    all: usize,
    taken: AtomicUsize,
    left: Notify,
}

/// Taker of places: a run or a tenant.
#[derive(Debug)]
pub(super) struct Taker {
    most: usize,
    own: AtomicUsize,
}

/// A place, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    shares: Arc<Shares>,
    taker: Arc<Taker>,
}

impl Taker {
    /// Makes a taker with a limit on its places, however many are free.
    pub(super) fn with(most: usize) -> Arc<Self> {
        Arc::new(Taker { most, own: AtomicUsize::new(0) })
    }
}

impl Shares {
    pub(super) fn new(all: usize) -> Arc<Self> {
        Arc::new(Shares { all, taken: AtomicUsize::new(0), left: Notify::new() })
    }

    /// Waits until a taker may have another place: while more places are free than it has itself, so that some remain
    /// for others. A taker without a place gets one in any case, even beyond the total.
    pub(super) async fn room(&self, taker: &Taker) {
        loop {
            // Registered before the check, so that a place that is freed after the check is not missed.
            let left = self.left.notified();
            let own = taker.own.load(Ordering::Relaxed);
            let free = self.all.saturating_sub(self.taken.load(Ordering::Relaxed));
            if own < taker.most && (own == 0 || own < free) {
                return;
            }
            left.await;
        }
    }

    /// Takes a place, after [`Shares::room`] has returned.
    pub(super) fn take(self: &Arc<Self>, taker: &Arc<Taker>) -> Place {
        self.taken.fetch_add(1, Ordering::Relaxed);
        taker.own.fetch_add(1, Ordering::Relaxed);
        Place { shares: Arc::clone(self), taker: Arc::clone(taker) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taker.own.fetch_sub(1, Ordering::Relaxed);
        self.shares.taken.fetch_sub(1, Ordering::Relaxed);
        self.shares.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn has_room(shares: &Shares, taker: &Taker) -> bool {
        tokio::time::timeout(Duration::from_millis(100), shares.room(taker)).await.is_ok()
    }

    async fn fill(shares: &Arc<Shares>, taker: &Arc<Taker>) -> Vec<Place> {
        let mut all = Vec::new();
        while has_room(shares, taker).await {
            all.push(shares.take(taker));
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_what_it_can_leaves_some_for_others() {
        let shares = Shares::new(16);
        let [greedy, second, third] = [(); 3].map(|()| Taker::with(64));
        let mut first = fill(&shares, &greedy).await;
        assert_eq!(first.len(), 8);
        assert_eq!(fill(&shares, &second).await.len(), 4);
        let _second = fill(&shares, &second).await;
        assert!(has_room(&shares, &third).await);

        let waits = shares.room(&greedy);
        first.truncate(2);
        assert!(
            tokio::time::timeout(Duration::from_millis(100), waits).await.is_ok(),
            "who leaves makes room"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_no_place_gets_one_however_many_take_what_they_can() {
        let shares = Shares::new(64);
        let mut taken = Vec::new();
        for _ in 0..40 {
            taken.push(fill(&shares, &Taker::with(64)).await);
        }
        assert!(taken.iter().all(|own| !own.is_empty()));
        assert!(has_room(&shares, &Taker::with(64)).await);
        assert!(!has_room(&shares, &Taker::with(0)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_has_more_than_its_share_however_many_are_free() {
        let (shares, taker) = (Shares::new(4096), Taker::with(64));
        assert_eq!(fill(&shares, &taker).await.len(), 64);
    }
}
