//! Durations as people write them: `90`, `30s`, `5m`, `2h`, `1h 30m`, `1d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::seconds_or_text::SecondsOrText;

/// A duration of whole seconds. Written as a number of seconds or with units; serialised as seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct WrittenDuration(Duration);

impl WrittenDuration {
    pub const fn from_secs(seconds: u64) -> Self {
        WrittenDuration(Duration::from_secs(seconds))
    }

    /// Returns the standard duration.
    pub fn duration(self) -> Duration {
        self.0
    }
}

/// Reasons why a text is not a duration.
#[derive(Debug, thiserror::Error)]
pub enum DurationError {
    #[error(
        "`{0}` is not a duration: write seconds or numbers with units, such as 90, 30s, 5m, 2h, 1h 30m or 1d"
    )]
    Unknown(String),
    /// Longer than a hundred years.
    #[error("`{0}` is too long: a duration has at most 36525d, which is a hundred years")]
    TooLong(String),
}

impl FromStr for WrittenDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let whole = if is_number {
            // A text of digits alone fails to parse only by overflow.
            Some(text.parse().map_or(Duration::MAX, Duration::from_secs))
        } else {
            friendly(text)
        };
        // Limit: a hundred years, so that no unit derived from it overflows.
        match whole {
            Some(whole) if whole.as_secs() <= 3_155_760_000 => Ok(WrittenDuration(whole)),
            Some(_) => Err(DurationError::TooLong(text.to_owned())),
            None => Err(DurationError::Unknown(text.to_owned())),
        }
    }
}

/// Reads whole seconds written with units. A day is 24 hours. Months and years are refused because their length
/// varies, and so is a text with colons, which is a time of day.
fn friendly(text: &str) -> Option<Duration> {
    let relative: jiff::Span = (!text.contains(':')).then(|| text.parse().ok())??;
    let exact = relative.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?;
    let exact = Duration::try_from(exact).ok()?;
    (exact.subsec_nanos() == 0).then_some(exact)
}

impl fmt::Display for WrittenDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0.as_secs())
    }
}

impl Serialize for WrittenDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0.as_secs())
    }
}

impl<'de> Deserialize<'de> for WrittenDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match SecondsOrText::take(deserializer, "a number of seconds, or a duration such as 30m")?
        {
            SecondsOrText::Seconds(seconds) => seconds.to_string(),
            SecondsOrText::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Formats a duration for a column of a table: as people read it, without the space.
pub fn in_column(duration: Duration) -> String {
    kernel::brief(duration).replace(' ', "")
}

/// Formats processor time: milliseconds below a second, tenths of a second below a minute, else as any duration.
pub fn processor(time: Duration) -> String {
    match time.as_millis() {
        short @ 0..1000 => format!("{short}ms"),
        1000..60_000 => format!("{:.1}s", time.as_secs_f64()),
        _ => kernel::brief(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_understood_and_nonsense_is_named() {
        for (text, seconds) in [
            ("90", 90),
            ("30s", 30),
            ("5m", 300),
            ("5 min", 300),
            ("2h", 7200),
            ("1.5h", 5400),
            ("1h 30m", 5400),
            ("1h30m", 5400),
            ("1d", 86_400),
            ("2 days", 172_800),
            ("1w", 604_800),
        ] {
            assert_eq!(text.parse::<WrittenDuration>().unwrap().duration().as_secs(), seconds, "{text}");
        }
        for text in
            ["", "m", "-1", "-1h", "1h ago", "1mo", "1y", "0.5s", "15:00:01", "99999999999999999999", "200y"]
        {
            let refused = text.parse::<WrittenDuration>();
            assert!(refused.is_err(), "{text}: {refused:?}");
            assert!(refused.unwrap_err().to_string().contains(text));
        }
        assert!("36525d".parse::<WrittenDuration>().is_ok());
        for text in ["36526d", "60000d", "99999999999999999999"] {
            let refused = text.parse::<WrittenDuration>().unwrap_err().to_string();
            assert_eq!(
                refused,
                format!("`{text}` is too long: a duration has at most 36525d, which is a hundred years")
            );
        }
    }

    #[test]
    fn json_takes_a_number_or_a_text() {
        assert_eq!(
            serde_json::from_str::<WrittenDuration>("60").unwrap(),
            serde_json::from_str("\"1m\"").unwrap()
        );
        assert!(serde_json::from_str::<WrittenDuration>("\"soon\"").is_err());
    }

    #[test]
    fn a_column_has_no_space_and_processor_time_is_exact_while_it_is_short() {
        assert_eq!(in_column(Duration::from_secs(7265)), "2h1m");
        let times = [7, 1500, 59_900, 61_000].map(|millis| processor(Duration::from_millis(millis)));
        assert_eq!(times, ["7ms", "1.5s", "59.9s", "1m 1s"]);
    }
}
