//! Moments for people, in the host's time zone. JSON carries epoch seconds instead.

use kernel::Timestamp;

/// Date and time, to the second: `2026-11-21 14:02:07`.
pub(crate) fn local(at: Timestamp) -> String {
    format(at, "%Y-%m-%d %H:%M:%S")
}

/// The time of day: `14:02:07`.
pub(crate) fn clock(at: Timestamp) -> String {
    format(at, "%H:%M:%S")
}

/// The time of day where that is within a day of now, else the date too: `14:02` or `2026-11-23 14:02`.
pub(crate) fn soon(at: Timestamp, now: Timestamp) -> String {
    const DAY: i64 = 86_400;
    let pattern = if (at.as_secs() - now.as_secs()).abs() < DAY { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    format(at, pattern)
}

fn format(at: Timestamp, pattern: &str) -> String {
    jiff::Timestamp::from_microsecond(at.as_micros()).map_or_else(
        |_| format!("{}s", at.as_secs()),
        |moment| moment.to_zoned(jiff::tz::TimeZone::system()).strftime(pattern).to_string(),
    )
}
