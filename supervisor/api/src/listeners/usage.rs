//! Usage counters of a run or a tenant, with the token bucket of its request rate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// Number of requests of one run that are processed concurrently. Others wait, without blocking other runs.
const CONCURRENT: usize = 2;
/// Silence after which a caller's counters are dropped: its bucket is full again by then.
pub(super) const FORGOTTEN: Duration = Duration::from_mins(1);
/// Burst of requests, in seconds' worth of the rate.
const BURST: f64 = 10.0;
/// Burst of connections, in seconds' worth of the rate. Each connection costs more than a request.
pub(super) const BURST_OF_CONNECTIONS: f64 = 2.0;

/// Usage counters of a run or a tenant.
#[derive(Debug)]
pub(super) struct CallerUsage {
    pub(super) requests: usize,
    pub(super) uploads: usize,
    /// Bytes of bodies being processed, and of unread replies.
    pub(super) bytes: usize,
    /// Time before which its connections are not read.
    pub(super) rests_until: Option<Instant>,
    /// Time of the last event about its throttling.
    pub(super) noted: Option<Instant>,
    /// Permits for requests being processed.
    pub(super) permits: Arc<Semaphore>,
    /// Permit for a request that may take long: one at a time.
    pub(super) slow_permit: Arc<Semaphore>,
    bucket: Bucket,
}

/// Token bucket: refilled at a rate, up to a burst.
#[derive(Debug)]
pub(super) struct Bucket {
    tokens: f64,
    at: Instant,
    seconds: f64,
}

impl Bucket {
    /// Makes a full bucket of this many seconds' worth.
    pub(super) fn full(rate: u32, seconds: f64, now: Instant) -> Self {
        Bucket { tokens: f64::from(rate) * seconds, at: now, seconds }
    }

    /// Refills the bucket at `rate` per second. Returns true if it holds a token.
    pub(super) fn has_token(&mut self, rate: u32, now: Instant) -> bool {
        let back = now.duration_since(self.at).as_secs_f64() * f64::from(rate);
        self.tokens = (self.tokens + back).min(f64::from(rate) * self.seconds);
        self.at = now;
        self.tokens >= 1.0
    }

    /// Takes a token if the bucket, refilled at `rate` per second, holds one.
    pub(super) fn try_take(&mut self, rate: u32, now: Instant) -> bool {
        let some = self.has_token(rate, now);
        if some {
            self.take();
        }
        some
    }

    /// Takes a token.
    pub(super) fn take(&mut self) {
        self.tokens -= 1.0;
    }

    /// Returns true if the bucket was unused for so long that it is full.
    pub(super) fn is_forgotten(&self, now: Instant) -> bool {
        now.duration_since(self.at) > FORGOTTEN
    }
}

impl CallerUsage {
    /// Makes counters without any usage.
    pub(super) fn new(rate: u32, now: Instant) -> Self {
        CallerUsage {
            requests: 0,
            uploads: 0,
            bytes: 0,
            rests_until: None,
            noted: None,
            permits: Arc::new(Semaphore::new(CONCURRENT)),
            slow_permit: Arc::new(Semaphore::new(1)),
            bucket: Bucket::full(rate, BURST, now),
        }
    }

    /// Takes a token for a request, from the bucket refilled at `rate` per second. Returns true if there was one.
    pub(super) fn take_token(&mut self, rate: u32, now: Instant) -> bool {
        self.bucket.try_take(rate, now)
    }

    /// Returns true if there is no usage, and was none for a while.
    pub(super) fn is_unused(&self, now: Instant) -> bool {
        let busy = self.requests + self.uploads + self.bytes > 0;
        !busy && self.bucket.is_forgotten(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_let_through_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut usage = CallerUsage::new(5, start);
        let take = |usage: &mut CallerUsage, now| {
            let mut taken = 0;
            while usage.take_token(5, now) {
                taken += 1;
            }
            taken
        };
        assert_eq!(take(&mut usage, start), 50);
        assert_eq!(take(&mut usage, start + Duration::from_secs(2)), 10);
        assert_eq!(take(&mut usage, start + Duration::from_mins(2)), 50, "no more than a burst is saved up");
    }

    #[test]
    fn counters_without_usage_for_a_while_are_unused() {
        let start = Instant::now();
        let mut usage = CallerUsage::new(5, start);
        assert!(!usage.is_unused(start) && usage.is_unused(start + FORGOTTEN * 2));
        usage.bytes = 1;
        assert!(!usage.is_unused(start + FORGOTTEN * 2));
    }
}
