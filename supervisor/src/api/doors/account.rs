//! What one run or one tenant has under way, and how many requests it may still make.

use std::time::{Duration, Instant};

/// A caller that was not heard of for so long is forgotten: its bucket is full again by then.
pub(super) const FORGOTTEN: Duration = Duration::from_mins(1);
/// So many seconds' worth of requests may be made at once.
const BURST: f64 = 10.0;

/// What one run or tenant has under way.
#[derive(Debug)]
pub(super) struct Account {
    /// Requests.
    pub(super) requests: usize,
    /// Files on their way in.
    pub(super) uploads: usize,
    /// Bytes of bodies that are being worked on, and of replies that are not read.
    pub(super) bytes: usize,
    /// When it was last told that it was throttled.
    pub(super) noted: Option<Instant>,
    /// Requests that may be made: they come back at the rate.
    left: f64,
    at: Instant,
}

impl Account {
    /// An account with nothing under way.
    pub(super) fn new(rate: u32, now: Instant) -> Self {
        Account { requests: 0, uploads: 0, bytes: 0, noted: None, left: f64::from(rate) * BURST, at: now }
    }

    /// Returns whether it may make another request now, at so many a second.
    pub(super) fn may_ask(&mut self, rate: u32, now: Instant) -> bool {
        let back = now.duration_since(self.at).as_secs_f64() * f64::from(rate);
        self.left = (self.left + back).min(f64::from(rate) * BURST);
        self.at = now;
        self.left >= 1.0
    }

    /// Counts a request that begins.
    pub(super) fn begin(&mut self) {
        self.requests += 1;
        self.left -= 1.0;
    }

    /// Returns whether nothing is under way, and nothing was for a while.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let busy = self.requests + self.uploads + self.bytes > 0;
        !busy && now.duration_since(self.at) > FORGOTTEN
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
                account.begin();
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
