//! Pause before the next try. The pause doubles with each failure, and its jitter separates tasks that failed together.
//!
//! The jitter is drawn once, in the transaction that records the end, and the resulting time is stored. A replay and
//! a repeated report draw nothing.

use std::time::Duration;

use crate::model::entropy::Entropy;

/// First pause. The first failure is retried at once; the second failure waits this long, and each further failure
/// doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause, jitter included.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// Divisor of a pause that gives its largest jitter: a quarter of the pause.
const PART: u32 = 4;

/// Returns the pause after this number of counted failures in a row, without jitter.
fn pause(failures: u32) -> Duration {
    // The longest pause includes its jitter: 240 s and a quarter of that.
    let longest = LONGEST_PAUSE * PART / (PART + 1);
    match failures {
        0 | 1 => Duration::ZERO,
        more => FIRST_PAUSE.saturating_mul(1_u32.checked_shl(more - 2).unwrap_or(u32::MAX)).min(longest),
    }
}

/// Random part of a pause. The board draws it once, when it records the end of a run, and stores the resulting time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jitter(u32);

impl Jitter {
    pub(crate) fn draw(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; 4];
        entropy.fill(&mut bytes);
        Self(u32::from_le_bytes(bytes))
    }

    /// Returns the pause after this number of failures in a row, with a jitter of up to a quarter.
    pub(crate) fn pause(self, failures: u32) -> Duration {
        let pause = pause(failures);
        pause + (pause / PART).mul_f64(f64::from(self.0) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
impl Jitter {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const MOST: Self = Self(u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::entropy::SeededEntropy;

    #[test]
    fn the_pause_doubles_from_the_second_failure_to_four_minutes() {
        assert_eq!(
            [0, 1, 2, 3, 4, 20, 40].map(|failures| pause(failures).as_secs()),
            [0, 0, 1, 2, 4, 240, 240]
        );
    }

    #[test]
    fn jitter_makes_a_pause_longer_by_a_quarter_at_most_and_none_out_of_nothing() {
        assert_eq!(
            [0, 1, 2, 4, 40].map(|failures| Jitter::NONE.pause(failures)),
            [0, 1, 2, 4, 40].map(pause)
        );
        let most = [0, 1, 2, 4, 40].map(|failures| Jitter::MOST.pause(failures).as_millis());
        assert_eq!(most, [0, 0, 1250, 5000, 300_000]);
    }

    #[test]
    fn tasks_that_fail_together_are_tried_again_apart() {
        let entropy = SeededEntropy::new(1);
        let pauses: Vec<_> = (0..100).map(|_| Jitter::draw(&entropy).pause(40)).collect();
        assert!(pauses.iter().all(|one| (pause(40)..=LONGEST_PAUSE).contains(one)), "{pauses:?}");
        let seconds: std::collections::BTreeSet<_> = pauses.iter().map(Duration::as_secs).collect();
        assert!(seconds.len() > 30, "{seconds:?}");
    }
}
