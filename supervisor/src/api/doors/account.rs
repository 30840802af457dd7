//! What one run or one tenant has under way, and how many requests it may still make.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// The requests of one run that are worked on at a time: the others wait, without blocking other runs.
const TURNS: usize = 2;
/// A caller that has been silent for this long is forgotten: its bucket is full again by then.
pub(super) const FORGOTTEN: Duration = Duration::from_mins(1);
/// The seconds' worth of requests that may be made at once.
const BURST: f64 = 10.0;
/// The seconds' worth of connections that may be opened at once: each costs more than a request.
pub(super) const BURST_OF_CONNECTIONS: f64 = 2.0;

/// What one run or tenant has under way.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) requests: usize,
    /// Files on their way in.
    pub(super) uploads: usize,
    /// Bytes of bodies that are being worked on, and of replies that are not read.
    pub(super) bytes: usize,
    /// Nothing more of it is looked at before.
    pub(super) rests_until: Option<Instant>,
    /// When it was last noted that it was throttled.
    pub(super) noted: Option<Instant>,
    /// Taken while a request is worked on.
    pub(super) turns: Arc<Semaphore>,
    /// Taken by a request that may take long.
    pub(super) long: Arc<Semaphore>,
    bucket: Bucket,
}

/// What may still be begun: it comes back at a rate, up to a burst.
#[derive(Debug)]
pub(super) struct Bucket {
    left: f64,
    at: Instant,
    seconds: f64,
}

impl Bucket {
    /// A full bucket: it holds this number of seconds' worth.
    pub(super) fn full(rate: u32, seconds: f64, now: Instant) -> Self {
        Bucket { left: f64::from(rate) * seconds, at: now, seconds }
    }

    /// Returns whether there is something in it now, at so much a second.
    pub(super) fn has_some(&mut self, rate: u32, now: Instant) -> bool {
        let back = now.duration_since(self.at).as_secs_f64() * f64::from(rate);
        self.left = (self.left + back).min(f64::from(rate) * self.seconds);
        self.at = now;
        self.left >= 1.0
    }

    /// Takes one out.
    pub(super) fn take(&mut self) {
        self.left -= 1.0;
    }

    /// Returns whether nobody has looked into it for so long that it is full.
    pub(super) fn is_forgotten(&self, now: Instant) -> bool {
        now.duration_since(self.at) > FORGOTTEN
    }
}

impl Account {
    /// An account with nothing under way.
    pub(super) fn new(rate: u32, now: Instant) -> Self {
        Account {
            requests: 0,
            uploads: 0,
            bytes: 0,
            rests_until: None,
            noted: None,
            turns: Arc::new(Semaphore::new(TURNS)),
            long: Arc::new(Semaphore::new(1)),
            bucket: Bucket::full(rate, BURST, now),
        }
    }

    /// Takes one request out of its bucket, which refills at this many a second. Returns whether there was one.
    pub(super) fn may_ask(&mut self, rate: u32, now: Instant) -> bool {
        let some = self.bucket.has_some(rate, now);
        if some {
            self.bucket.take();
        }
        some
    }

    /// Returns whether nothing is under way, and nothing was for a while.
    pub(super) fn is_over(&self, now: Instant) -> bool {
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
        let mut account = Account::new(5, start);
        let take = |account: &mut Account, now| {
            let mut taken = 0;
            while account.may_ask(5, now) {
                taken += 1;
            }
            taken
        };
        assert_eq!(take(&mut account, start), 50);
        assert_eq!(take(&mut account, start + Duration::from_secs(2)), 10);
        assert_eq!(
            take(&mut account, start + Duration::from_mins(2)),
            50,
            "no more than a burst is saved up"
        );
    }

    #[test]
    fn an_account_is_over_when_nothing_is_under_way_for_a_while() {
        let start = Instant::now();
        let mut account = Account::new(5, start);
        assert!(!account.is_over(start) && account.is_over(start + FORGOTTEN * 2));
        account.bytes = 1;
        assert!(!account.is_over(start + FORGOTTEN * 2));
    }
}
