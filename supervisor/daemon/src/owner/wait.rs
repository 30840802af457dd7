//! Wait before another try after a failure. Its length doubles with each try up to a minute, and is ten minutes once a
//! breaker is open.

use std::time::Duration;

use kernel::{BREAKER_PAUSE, Timestamp};

pub(super) const FIRST: Duration = Duration::from_secs(1);
/// Longest wait of a closed breaker.
const LONGEST: Duration = Duration::from_mins(1);
/// Largest part by which a wait is shortened at random, so that simultaneous failures are not tried again at the same
/// time.
const JITTER: f64 = 0.2;

/// Wait with its reason.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) why: String,
    /// End of the wait; none once it is over and a new try is due or in progress.
    pub(super) until: Option<Timestamp>,
    pub(super) times: u32,
    /// Time of the last failure.
    since: Timestamp,
    /// Full length of the wait.
    pause: Duration,
}

impl Wait {
    /// Makes the wait of a closed breaker, after `times` earlier ones. `chance` is a random number from 0 to 1.
    pub(super) fn again(why: String, times: u32, now: Timestamp, chance: f64) -> Self {
        let pause = FIRST.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX)).min(LONGEST);
        Wait::lasting(why, times, now, pause.mul_f64(1.0 - JITTER * chance))
    }

    /// Makes the wait of an open breaker, after `times` earlier ones.
    pub(super) fn seldom(why: String, times: u32, now: Timestamp) -> Self {
        Wait::lasting(why, times, now, BREAKER_PAUSE)
    }

    /// Makes a wait that an earlier daemon began, after `times` earlier ones. Its failure counts as one at `now`.
    pub(super) fn taken_over(why: String, times: u32, until: Timestamp, now: Timestamp) -> Self {
        Wait { why, until: Some(until), times, since: now, pause: BREAKER_PAUSE }
    }

    /// Makes a wait of this length, after `times` earlier ones.
    pub(super) fn lasting(why: String, times: u32, now: Timestamp, pause: Duration) -> Self {
        Wait { why, until: Some(after(now, pause)), times: times.saturating_add(1), since: now, pause }
    }

    /// Returns true if a success at `at` came after this failure. A failure with a time in the future is from before the clock
    /// was set back, so it counts as earlier.
    pub(super) fn is_older_than(&self, at: Timestamp, now: Timestamp) -> bool {
        self.since <= at || self.since > now
    }

    /// Ends the wait if its time has come, or if its end is further away than its whole length because the clock was set back.
    /// Returns true if it ended.
    pub(super) fn expire(&mut self, now: Timestamp) -> bool {
        let over = self.until.is_some_and(|until| until <= now || until > after(now, self.pause));
        if over {
            self.until = None;
        }
        over
    }
}

/// Returns the time one pause after `now`.
pub(super) fn after(now: Timestamp, pause: Duration) -> Timestamp {
    let pause = i64::try_from(pause.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_add(pause))
}
