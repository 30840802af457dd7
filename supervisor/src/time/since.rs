//! A point in the past: `10m` is ten minutes ago.

use std::str::FromStr;

use kernel::{Clock as _, SystemClock, Timestamp};

use super::duration::WrittenDuration;
use super::timestamp::{When, WhenError};

/// Since when: a duration with a unit counts back from now, other words are those of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Since(Timestamp);

impl Since {
    /// Returns the point in time.
    pub(crate) fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl FromStr for Since {
    type Err = WhenError;

    fn from_str(text: &str) -> Result<Self, WhenError> {
        let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
        match text.parse::<WrittenDuration>() {
            Ok(ago) if has_unit => {
                let ago = i64::try_from(ago.duration().as_micros()).unwrap_or(i64::MAX);
                Ok(Since(Timestamp::from_micros(SystemClock.now().as_micros().saturating_sub(ago))))
            }
            Ok(_) | Err(_) => text.parse::<When>().map(|when| Since(when.timestamp())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_back_and_a_time_is_itself() {
        let ago = |text: &str| SystemClock.now().as_secs() - text.parse::<Since>().unwrap().0.as_secs();
        assert!((7200..7210).contains(&ago("2h")), "{}", ago("2h"));
        assert!((86_400..86_410).contains(&ago("1d")));
        assert_eq!("2026-11-23T09:00:00Z".parse::<Since>().unwrap().0.as_secs(), 1_795_424_400);
        assert!("nonsense".parse::<Since>().is_err());
    }
}
