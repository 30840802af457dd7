//! Detects processes that outlive SIGKILL: none of them has ended for a while.
//!
//! See decision 0135.

use std::collections::BTreeSet;

/// Time in microseconds within which at least one process must end. A host that needs long to end thousands of
/// processes still ends some of them within it.
const STUCK_US: u64 = 10_000_000;

/// Remaining processes of a run at the latest time at which one of them had ended, with that time.
#[derive(Clone, Debug, Default)]
pub struct Stuck<Id> {
    since: Option<(u64, BTreeSet<Id>)>,
}

impl<Id: Ord> Stuck<Id> {
    /// Adds a sample of the remaining processes at `now_us`, in microseconds of `CLOCK_BOOTTIME`. Returns true if all
    /// processes that remained ten seconds or longer ago still remain. Processes that appeared in between do not count.
    pub fn check(&mut self, now_us: u64, remaining: BTreeSet<Id>) -> bool {
        match &self.since {
            Some((since, before)) if before.is_subset(&remaining) => {
                now_us.saturating_sub(*since) >= STUCK_US
            }
            Some(_) | None => {
                self.since = Some((now_us, remaining));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuck(looks: &[(u64, &[i32])]) -> Vec<bool> {
        let mut stuck = Stuck::default();
        let looked = looks.iter().map(|(second, left)| {
            stuck.check(second * 1_000_000, left.iter().copied().collect::<BTreeSet<i32>>())
        });
        looked.collect()
    }

    #[test]
    fn what_does_not_end_for_ten_seconds_is_stuck() {
        assert_eq!(stuck(&[(1, &[7, 8]), (5, &[7, 8]), (11, &[7, 8])]), [false, false, true]);
        assert_eq!(
            stuck(&[(1, &[7]), (11, &[7, 9])]),
            [false, true],
            "what has come in between does not count"
        );
        assert_eq!(stuck(&[(1, &[]), (11, &[])]), [false, true], "nobody may look at what is left");
    }

    #[test]
    fn what_ends_slowly_is_not_stuck() {
        let many: Vec<i32> = (0..2000).collect();
        let looks: Vec<(u64, &[i32])> =
            (0..200).map(|n| (n * 9, &many[usize::try_from(n).unwrap() * 10..])).collect();
        assert!(!stuck(&looks).contains(&true));
        assert_eq!(stuck(&[(1, &[7, 8]), (9, &[8]), (18, &[8]), (19, &[8])]), [false, false, false, true]);
    }
}
