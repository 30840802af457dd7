//! Measures the time for which a worker shows no progress. Pure.
//!
//! Output is progress at once. Heartbeats and the activity of processes are sampled a few times within the limit. A sample
//! that shows either counts as progress now, so a worker is ended no earlier than the limit after its last progress, and no
//! later than the limit and the time between two samples.

use std::time::Duration;

use crate::activity::Activity;

/// Number of samples within the limit.
const SAMPLES: u64 = 4;

/// Time without progress, with its limit. Times are microseconds of `CLOCK_BOOTTIME`.
#[derive(Debug)]
pub(crate) struct Silence {
    since: u64,
    limit_us: u64,
    sampled_at: u64,
    seen: Activity,
}

impl Silence {
    /// Begins at `now`, with a first sample.
    pub(crate) fn new(now: u64, limit_us: u64, seen: Activity) -> Self {
        Self { since: now, limit_us, sampled_at: now, seen }
    }

    /// Returns the time at which the worker has shown no progress for too long.
    pub(crate) fn ends_at(&self) -> u64 {
        self.since.saturating_add(self.limit_us)
    }

    /// Returns the time of the next sample: after a part of the limit, and before the worker is ended in any case.
    pub(crate) fn next_sample_at(&self) -> u64 {
        self.sampled_at.saturating_add(self.limit_us / SAMPLES).min(self.ends_at())
    }

    /// Notes that the worker has written output.
    pub(crate) fn written(&mut self, now: u64) {
        self.since = now;
    }

    /// Notes what a sample shows.
    pub(crate) fn sample(&mut self, now: u64, seen: Activity) {
        let elapsed = Duration::from_micros(now.saturating_sub(self.sampled_at));
        if seen.is_progress(&self.seen, elapsed) {
            self.since = now;
        }
        // The host was asleep, so the worker could make no progress.
        let slept = seen.slept_us.saturating_sub(self.seen.slept_us);
        self.since = self.since.saturating_add(slept).min(now);
        self.sampled_at = now;
        self.seen = seen;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// Returns the activity of a run that has used this much processor time.
    fn busy(cpu_us: u64) -> Activity {
        Activity { cpu_us, ..Activity::default() }
    }

    #[test]
    fn a_worker_that_does_nothing_is_looked_at_four_times_and_ends_at_the_limit() {
        let mut silence = Silence::new(0, 40 * SECOND, busy(0));
        let mut samples = Vec::new();
        while silence.next_sample_at() < silence.ends_at() {
            samples.push(silence.next_sample_at() / SECOND);
            silence.sample(silence.next_sample_at(), busy(0));
        }
        assert_eq!((samples, silence.ends_at()), (vec![10, 20, 30], 40 * SECOND));
    }

    #[test]
    fn what_it_writes_and_what_it_does_begin_the_limit_anew() {
        let mut silence = Silence::new(0, 40 * SECOND, busy(0));
        silence.written(5 * SECOND);
        assert_eq!((silence.next_sample_at(), silence.ends_at()), (10 * SECOND, 45 * SECOND));
        silence.sample(10 * SECOND, busy(SECOND));
        assert_eq!(silence.ends_at(), 50 * SECOND, "it works");
        silence.sample(20 * SECOND, busy(SECOND));
        assert_eq!(silence.ends_at(), 50 * SECOND, "it has done nothing since");
    }

    #[test]
    fn a_worker_that_works_on_is_never_ended_however_long_it_says_nothing() {
        let mut silence = Silence::new(0, 40 * SECOND, busy(0));
        let mut now = 0;
        while now < 1000 * SECOND {
            now = silence.next_sample_at();
            silence.sample(now, busy(now / 10));
            assert!(silence.ends_at() > now);
        }
    }

    #[test]
    fn time_that_the_host_was_asleep_does_not_count() {
        let mut silence = Silence::new(0, 40 * SECOND, busy(0));
        let slept = Activity { slept_us: 3600 * SECOND, ..busy(0) };
        silence.sample(3620 * SECOND, slept.clone());
        assert_eq!(silence.ends_at(), 3640 * SECOND, "20 of its 40 seconds are over");
        silence.sample(3640 * SECOND, slept);
        assert_eq!(silence.ends_at(), 3640 * SECOND);
    }
}
