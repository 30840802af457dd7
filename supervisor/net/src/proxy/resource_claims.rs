//! Shares of resources that all runs use together: connections and name look-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A number of claims. No claimant can occupy all of them, and each claimant can always get one.
#[derive(Debug)]
pub(super) struct SharedResource {
    all: usize,
    claimed: AtomicUsize,
    freed: Notify,
}

/// Taker of claims: a run or a tenant.
#[derive(Debug)]
pub(super) struct ResourceHolder {
    limit: usize,
    claimed: AtomicUsize,
}

/// A claim, counted until it is dropped.
#[derive(Debug)]
pub(super) struct ResourceClaim {
    resource: Arc<SharedResource>,
    claimant: Arc<ResourceHolder>,
}

impl ResourceHolder {
    /// Makes a claimant with a limit on its claims, however many are free.
    pub(super) fn with(most: usize) -> Arc<Self> {
        Arc::new(ResourceHolder { limit: most, claimed: AtomicUsize::new(0) })
    }
}

impl SharedResource {
    pub(super) fn new(all: usize) -> Arc<Self> {
        Arc::new(SharedResource { all, claimed: AtomicUsize::new(0), freed: Notify::new() })
    }

    /// Waits until a claimant may have another claim: while more claims are free than it has itself, so that some remain
    /// for others. A claimant without a claim gets one in any case, even beyond the total.
    pub(super) async fn may_claim(&self, claimant: &ResourceHolder) {
        loop {
            // Registered before the check, so that a claim that is freed after the check is not missed.
            let left = self.freed.notified();
            let held = claimant.claimed.load(Ordering::Relaxed);
            let free = self.all.saturating_sub(self.claimed.load(Ordering::Relaxed));
            if held < claimant.limit && (held == 0 || held < free) {
                return;
            }
            left.await;
        }
    }

    /// Takes a claim, after [`SharedResource::may_claim`] has returned.
    pub(super) fn claim(self: &Arc<Self>, claimant: &Arc<ResourceHolder>) -> ResourceClaim {
        self.claimed.fetch_add(1, Ordering::Relaxed);
        claimant.claimed.fetch_add(1, Ordering::Relaxed);
        ResourceClaim { resource: Arc::clone(self), claimant: Arc::clone(claimant) }
    }
}

impl Drop for ResourceClaim {
    fn drop(&mut self) {
        self.claimant.claimed.fetch_sub(1, Ordering::Relaxed);
        self.resource.claimed.fetch_sub(1, Ordering::Relaxed);
        self.resource.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn has_room(resource: &SharedResource, claimant: &ResourceHolder) -> bool {
        tokio::time::timeout(Duration::from_millis(100), resource.may_claim(claimant)).await.is_ok()
    }

    async fn fill(resource: &Arc<SharedResource>, claimant: &Arc<ResourceHolder>) -> Vec<ResourceClaim> {
        let mut all = Vec::new();
        while has_room(resource, claimant).await {
            all.push(resource.claim(claimant));
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_what_it_can_leaves_some_for_others() {
        let resource = SharedResource::new(16);
        let [greedy, second, third] = [(); 3].map(|()| ResourceHolder::with(64));
        let mut first = fill(&resource, &greedy).await;
        assert_eq!(first.len(), 8);
        assert_eq!(fill(&resource, &second).await.len(), 4);
        let _second = fill(&resource, &second).await;
        assert!(has_room(&resource, &third).await);

        let waits = resource.may_claim(&greedy);
        first.truncate(2);
        assert!(
            tokio::time::timeout(Duration::from_millis(100), waits).await.is_ok(),
            "who leaves makes room"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_no_place_gets_one_however_many_take_what_they_can() {
        let resource = SharedResource::new(64);
        let mut taken = Vec::new();
        for _ in 0..40 {
            taken.push(fill(&resource, &ResourceHolder::with(64)).await);
        }
        assert!(taken.iter().all(|own| !own.is_empty()));
        assert!(has_room(&resource, &ResourceHolder::with(64)).await);
        assert!(!has_room(&resource, &ResourceHolder::with(0)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_has_more_than_its_share_however_many_are_free() {
        let (resource, claimant) = (SharedResource::new(4096), ResourceHolder::with(64));
        assert_eq!(fill(&resource, &claimant).await.len(), 64);
    }
}
