//! Shared parts of the formats with one JSON object a line: reading lines, and lenient values.

use jiff::Timestamp as Time;
use kernel::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use shim::lenient;
use shim::rundir::Stdout;

/// Passes each line that parses as an event to `take`, in order.
pub(super) fn each<E: DeserializeOwned>(stdout: &Stdout, mut take: impl FnMut(E)) {
    stdout.each_json_line(|line| {
        if let Some(event) = lenient::read(line) {
            take(event);
        }
    });
}

/// Deserialises a value leniently: a value of another type becomes the default, so that it makes no event unreadable.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// A point in time: epoch seconds, also with a fraction, or RFC 3339. Any other value becomes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment(pub(super) Option<Timestamp>);

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let whole = value.as_i64().or_else(|| value.as_f64().and_then(whole_seconds));
        let written = || Some(value.as_str()?.trim().parse::<Time>().ok()?.as_second());
        Ok(Moment(whole.or_else(written).map(Timestamp::from_secs)))
    }
}

/// Rounds seconds with a fraction up.
#[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
fn whole_seconds(seconds: f64) -> Option<i64> {
    seconds.is_finite().then(|| seconds.ceil() as i64)
}

/// A count by an agent. A value that is no number or negative becomes 0, so that it makes no event unreadable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Count(value.as_u64().unwrap_or_default()))
    }
}

/// An amount of US dollars, in millionths. Any other value becomes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dollars(pub(super) Option<u64>);

/// Largest amount that is believed: 10 million dollars.
const LARGEST_DOLLARS: f64 = 1e7;

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let amount = value.as_f64().filter(|amount| (0.0..=LARGEST_DOLLARS).contains(amount));
        Ok(Dollars(amount.map(millionths)))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an amount is between 0 and LARGEST_DOLLARS"
)]
fn millionths(dollars: f64) -> u64 {
    (dollars * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_or_a_text_and_spoils_nothing() {
        let text =
            r#"[1000, 999.5, "1970-01-01T00:16:40Z", "1970-01-01T01:16:40.5+01:00", "soon", null, {}, true]"#;
        let times: Vec<Moment> = serde_json::from_str(text).unwrap();
        let at = Some(Timestamp::from_secs(1000));
        let times: Vec<_> = times.iter().map(|time| time.0).collect();
        assert_eq!(times, [at, at, at, at, None, None, None, None]);
    }

    #[test]
    fn a_number_that_makes_no_sense_is_none_and_spoils_nothing() {
        let counts: Vec<Count> = serde_json::from_str(r#"[7, -1, 1.5, "9", null, {}, 1e300]"#).unwrap();
        assert_eq!(counts.iter().map(|count| count.0).collect::<Vec<_>>(), [7, 0, 0, 0, 0, 0, 0]);
        let costs: Vec<Dollars> = serde_json::from_str(r#"[0.0123, 0, -1, 1e300, "1", null]"#).unwrap();
        let costs: Vec<_> = costs.iter().map(|cost| cost.0).collect();
        assert_eq!(costs, [Some(12_300), Some(0), None, None, None, None]);
    }
}
