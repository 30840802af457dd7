//! Formats durations and amounts of money for people. All texts and tables use these forms.

use std::fmt;
use std::time::Duration;

/// Formats a duration with at most two units and without a zero unit: `45s`, `5m`, `2h 10m`, `3d 4h`.
pub fn brief(duration: Duration) -> String {
    let s = duration.as_secs();
    let two = |(large, name): (u64, &str), (small, rest): (u64, &str)| match small {
        0 => format!("{large}{name}"),
        _ => format!("{large}{name} {small}{rest}"),
    };
    match s {
        0..60 => format!("{s}s"),
        60..3600 => two((s / 60, "m"), (s % 60, "s")),
        3600..86_400 => two((s / 3600, "h"), (s % 3600 / 60, "m")),
        _ => two((s / 86_400, "d"), (s % 86_400 / 3600, "h")),
    }
}

/// Amount in millionths of a US dollar. The format has two decimals, and more where a small amount needs them: `$1.50`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dollars(pub u64);

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let digits = format!("{rest:06}");
        let length = digits.trim_end_matches('0').len().max(2);
        write!(f, "${whole}.{}", &digits[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_two_units_at_most() {
        let shown: Vec<_> =
            [0, 59, 60, 61, 3597, 3600, 7265, 86_400, 90_000].map(|s| brief(Duration::from_secs(s))).into();
        assert_eq!(shown, ["0s", "59s", "1m", "1m 1s", "59m 57s", "1h", "2h 1m", "1d", "1d 1h"]);
    }

    #[test]
    fn a_small_amount_has_the_digits_that_it_needs() {
        let amounts: Vec<String> = [0, 1, 12_300, 1_500_000].map(|micros| Dollars(micros).to_string()).into();
        assert_eq!(amounts, ["$0.00", "$0.000001", "$0.0123", "$1.50"]);
    }
}
