//! Points in the past as people write them: `10m` is ten minutes ago.

use std::str::FromStr;

use kernel::{Clock as _, SystemClock, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::duration::WrittenDuration;
use super::seconds_or_text::SecondsOrText;
use super::timestamp::{When, WhenError};

/// A point in the past. A duration with a unit counts back from now; any other text is read as a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since(Timestamp);

impl Since {
    /// Returns the point in time.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl FromStr for Since {
    type Err = WhenError;

    fn from_str(text: &str) -> Result<Self, WhenError> {
        let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
        match text.parse::<WrittenDuration>() {
            Ok(ago) if has_unit => Ok(Since(SystemClock.now().before(ago.duration()))),
            Ok(_) | Err(_) => text.parse::<When>().map(|when| Since(when.timestamp())),
        }
    }
}

impl Serialize for Since {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0.as_secs())
    }
}

impl<'de> Deserialize<'de> for Since {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match SecondsOrText::take(
            deserializer,
            "epoch seconds, or a time such as 10m or 2026-11-23T09:00:00Z",
        )? {
            SecondsOrText::Seconds(seconds) => format!("@{seconds}"),
            SecondsOrText::Text(text) => text,
        }
        .parse()
        .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Since {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Since".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "description": "epoch seconds, an RFC 3339 time, a duration before now such as 2h, or a time such as 'yesterday'"
        })
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
