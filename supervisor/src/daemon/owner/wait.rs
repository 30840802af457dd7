//! One reason to wait, and how long: twice as long with each try, up to a minute, and seldom at last.

use std::time::Duration;

use kernel::Timestamp;

/// The first wait.
pub(super) const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_mins(1);
/// The wait of what has an open breaker.
pub(super) const SELDOM: Duration = Duration::from_mins(10);
/// By how much a wait is shorter at most, so that what broke at once is not tried again at once.
const JITTER: f64 = 0.2;

/// One reason to wait.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) why: String,
    /// Until when; none once that is over and a new try is due or under way.
    pub(super) until: Option<Timestamp>,
    pub(super) times: u32,
    /// When what it waits for broke last.
    since: Timestamp,
    /// How long it is in all.
    pause: Duration,
}

impl Wait {
    /// The wait after this many earlier ones. `chance` is from 0 to 1.
    pub(super) fn again(why: String, times: u32, now: Timestamp, chance: f64) -> Self {
        let pause = FIRST.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX)).min(LONGEST);
        Wait::lasting(why, times, now, pause.mul_f64(1.0 - JITTER * chance))
    }

    /// The wait of what has an open breaker, after this many earlier ones.
    pub(super) fn seldom(why: String, times: u32, now: Timestamp) -> Self {
        Wait::lasting(why, times, now, SELDOM)
    }

    /// A wait that an earlier daemon has begun, after this many. What broke has done so before now.
    pub(super) fn taken_over(why: String, times: u32, until: Timestamp, now: Timestamp) -> Self {
        Wait { why, until: Some(until), times, since: now, pause: SELDOM }
    }

    /// A wait of this length after this many earlier ones.
    pub(super) fn lasting(why: String, times: u32, now: Timestamp, pause: Duration) -> Self {
        Wait { why, until: Some(after(now, pause)), times: times.saturating_add(1), since: now, pause }
    }

    /// Whether what worked at a time did so after this had broken. What broke in the future did so before the clock was set back.
    pub(super) fn is_older_than(&self, at: Timestamp, now: Timestamp) -> bool {
        self.since <= at || self.since > now
    }

    /// Ends the wait if its time has come, or if the clock was set so far back that it never would.
    pub(super) fn expire(&mut self, now: Timestamp) -> bool {
        let over = self.until.is_some_and(|until| until <= now || until > after(now, self.pause));
        if over {
            self.until = None;
        }
        over
    }
}

/// The time that is a pause ahead.
pub(super) fn after(now: Timestamp, pause: Duration) -> Timestamp {
    let pause = i64::try_from(pause.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_add(pause))
}
