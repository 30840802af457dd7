//! Parses and formats points in time. People write and read local time; JSON has epoch seconds.
//!
//! The time zone comes from `TZ`, else from the host. A local time that does not exist because clocks go forward is moved
//! forward by the gap. A local time that occurs twice because clocks go back means the first of the two. RFC 5545 prescribes
//! both rules; with them, a nightly job runs once in such a night. A duration (`2h`, `1d`) is exact across such a change;
//! words of the calendar (`tomorrow`, `1 month`) keep the time of day.

use std::fmt;
use std::str::FromStr;

use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use kernel::{Tick, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::duration::WrittenDuration;
use super::seconds_or_text::SecondsOrText;

const WHOLE: &str = "%Y-%m-%d %H:%M:%S %:z";

/// Formats date, time and offset from UTC: `2026-11-21 14:02:07 +01:00`.
pub fn local(at: Timestamp) -> String {
    format_in(&TimeZone::system(), at, WHOLE)
}

/// Returns today's date as a tick: `2026-11-21`.
pub fn today() -> Tick {
    let day = Zoned::now().strftime("%Y-%m-%d").to_string();
    day.parse().unwrap_or_else(|_| unreachable!("a date is a tick"))
}

/// Formats the time of day: `14:02:07`, with the offset if clocks show this time twice today.
pub fn clock(at: Timestamp) -> String {
    clock_in(&TimeZone::system(), at)
}

/// Formats a time of today as the time of day, any other with date and offset.
pub fn soon(at: Timestamp, now: Timestamp) -> String {
    soon_in(&TimeZone::system(), at, now)
}

fn soon_in(zone: &TimeZone, at: Timestamp, now: Timestamp) -> String {
    let day = |at| format_in(zone, at, "%Y-%m-%d");
    if day(at) == day(now) { clock_in(zone, at) } else { format_in(zone, at, WHOLE) }
}

fn clock_in(zone: &TimeZone, at: Timestamp) -> String {
    let twice = jiff::Timestamp::from_microsecond(at.as_micros())
        .is_ok_and(|at| zone.to_ambiguous_timestamp(zone.to_datetime(at)).is_ambiguous());
    format_in(zone, at, if twice { "%H:%M:%S %:z" } else { "%H:%M:%S" })
}

fn format_in(zone: &TimeZone, at: Timestamp, pattern: &str) -> String {
    jiff::Timestamp::from_microsecond(at.as_micros()).map_or_else(
        |_| format!("{}s", at.as_secs()),
        |at| at.to_zoned(zone.clone()).strftime(pattern).to_string(),
    )
}

/// Point in time as a person or a client writes it. Relative words are resolved when they are parsed, in the time zone of
/// this process, so a command line sends the point in time and not the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When(Timestamp);

impl When {
    /// Returns the point in time.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

/// Reasons why a text is not a point in time.
#[derive(Debug, thiserror::Error)]
pub enum WhenError {
    #[error(
        "`{0}` is not a time: write 2h, 2026-11-23, '2026-11-23 09:00', 'tomorrow 9am', an RFC 3339 time, or epoch \
         seconds"
    )]
    Unknown(String),
    /// A number that may be a date or a count of seconds.
    #[error(
        "`{0}` is ambiguous: write seconds with a unit, such as {0}s, or a date with dashes, such as 2026-11-23"
    )]
    Unclear(String),
    /// A local time, while the time zone is unknown.
    #[error(
        "`{text}` is a local time, and the time zone of TZ is not known: {source}; add an offset, such as +01:00"
    )]
    Zone {
        /// The text as written.
        text: String,
        /// Reason why the zone is unknown.
        source: jiff::Error,
    },
}

impl FromStr for When {
    type Err = WhenError;

    fn from_str(text: &str) -> Result<Self, WhenError> {
        let now = jiff::Timestamp::now();
        match TimeZone::try_system() {
            Ok(zone) => parse(text, &now.to_zoned(zone)),
            // A duration, epoch seconds and a time with its own offset need no zone.
            Err(source) if crate::environment::variable("TZ").is_some() => {
                parse_absolute(text, now)?.ok_or_else(|| WhenError::Zone { text: text.to_owned(), source })
            }
            // A host that names no zone uses UTC.
            Err(_) => parse(text, &now.to_zoned(TimeZone::UTC)),
        }
        .map(When)
    }
}

/// Parses a time. Relative words count from `now`; local times are in the zone of `now`.
fn parse(text: &str, now: &Zoned) -> Result<Timestamp, WhenError> {
    if let Some(at) = parse_absolute(text, now.timestamp())? {
        return Ok(at);
    }
    let text = text.trim();
    let unknown = || WhenError::Unknown(text.to_owned());
    if let Ok(local) = text.parse::<DateTime>() {
        return now
            .time_zone()
            .to_timestamp(local)
            .map_err(|_| unknown())
            .and_then(|at| kernel_time(at, text));
    }
    // The library follows `date -d`, which reads an empty text, a single letter and a bare zone name as midnight of
    // today. These are refused here.
    let says_something =
        text.contains(|c: char| c.is_ascii_digit()) || WORDS.iter().any(|word| has(text, word));
    // `date -d` reads a number with one letter as an hour in a military time zone. People mean a unit; a letter that
    // comes here is not one, so the text is refused.
    let letter = text.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let is_unit = letter.len() == 1 && letter.len() < text.len();
    let parsed =
        (says_something && !is_unit).then(|| parse_datetime::parse_datetime_at_date(now.clone(), text));
    let at = parsed.and_then(Result::ok).and_then(parse_datetime::ParsedDateTime::into_zoned);
    kernel_time(at.ok_or_else(unknown)?.timestamp(), text)
}

/// Words that form a time without a number.
const WORDS: [&str; 17] = [
    "now",
    "today",
    "tomorrow",
    "yesterday",
    "noon",
    "midnight",
    "next",
    "ago",
    "mon",
    "tue",
    "wed",
    "thu",
    "fri",
    "sat",
    "sun",
    "week",
    "month",
];

fn has(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphabetic()).any(|part| part.to_ascii_lowercase().starts_with(word))
}

/// Parses a time that is the same in every zone: a duration from now, epoch seconds, or a time with its offset. Returns none
/// for any other text.
fn parse_absolute(text: &str, now: jiff::Timestamp) -> Result<Option<Timestamp>, WhenError> {
    let text = text.trim();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let epoch = |number: &str| {
        let seconds = number.parse().ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        let at = seconds.ok_or_else(|| WhenError::Unknown(text.to_owned()))?;
        kernel_time(at, text).map(Some)
    };
    if let Some(number) = text.strip_prefix('@').filter(|number| digits(number)) {
        return epoch(number);
    }
    if digits(text) {
        // Ten digits are epoch seconds since 2001. Up to seven are a duration of less than four months, in seconds. Eight or
        // nine may be either, or a date without its dashes.
        match text.len() {
            10.. => return epoch(text),
            8 | 9 => return Err(WhenError::Unclear(text.to_owned())),
            _ => {}
        }
    }
    let duration = text.strip_prefix("in ").or(text.strip_prefix('+')).unwrap_or(text).trim_start();
    if let Ok(duration) = duration.parse::<WrittenDuration>() {
        let now = Timestamp::from_micros(now.as_microsecond());
        return Ok(Some(now.after(duration.duration())));
    }
    let zoned = text.parse::<Zoned>().map(|at| at.timestamp());
    match zoned.or_else(|_| text.parse::<jiff::Timestamp>()) {
        Ok(at) => kernel_time(at, text).map(Some),
        Err(_) => Ok(None),
    }
}

/// Converts a time to the type of the board. Refuses times before 1970, and times from `OPEN_END` on, which means "no end".
fn kernel_time(at: jiff::Timestamp, text: &str) -> Result<Timestamp, WhenError> {
    let at = Timestamp::from_micros(at.as_microsecond());
    let is_storable = (Timestamp::from_micros(0)..Timestamp::OPEN_END).contains(&at);
    if is_storable { Ok(at) } else { Err(WhenError::Unknown(text.to_owned())) }
}

/// Formats the time in UTC, so that it is the same point in time for every reader.
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0.as_micros()) {
            Ok(at) => at.fmt(f),
            Err(_) => write!(f, "@{}", self.0.as_secs()),
        }
    }
}

impl Serialize for When {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match SecondsOrText::take(
            deserializer,
            "epoch seconds, or a time such as 2h or 2026-11-23T09:00:00Z",
        )? {
            SecondsOrText::Seconds(seconds) => format!("@{seconds}"),
            SecondsOrText::Text(text) => text,
        }
        .parse()
        .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for When {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "When".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "description": "epoch seconds, an RFC 3339 time, a duration from now such as 2h, or a time such as 'tomorrow 9am'"
        })
    }
}

#[cfg(test)]
#[path = "timestamp_tests.rs"]
mod tests;
