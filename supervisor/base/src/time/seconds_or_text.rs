//! Number of seconds or text: the two forms in which JSON carries a duration or a time.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// A number of seconds, or the text that a person would write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecondsOrText {
    Seconds(u64),
    /// Text, not yet parsed.
    Text(String),
}

impl SecondsOrText {
    /// Deserialises either form; `expected` describes the value in the error.
    pub(crate) fn take<'de, D: Deserializer<'de>>(
        deserializer: D,
        expected: &'static str,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(expected))
    }
}

struct Either(&'static str);

impl Visitor<'_> for Either {
    type Value = SecondsOrText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<SecondsOrText, E> {
        Ok(SecondsOrText::Seconds(seconds))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<SecondsOrText, E> {
        u64::try_from(seconds)
            .map(SecondsOrText::Seconds)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(seconds), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SecondsOrText, E> {
        Ok(SecondsOrText::Text(text.to_owned()))
    }
}
