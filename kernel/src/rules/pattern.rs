//! Patterns of cron on a calendar whose clocks change, as the cron of Debian takes them.
//!
//! A pattern whose minute and hour are fixed, so that neither begins with `*`, names times of the calendar. A time that
//! is left out is the first moment after it; a time that comes twice is the first of both. Any other pattern runs on
//! with the clocks: it has no ticks in an hour that is left out, and ticks in both of an hour that comes twice.
//!
//! The library for patterns loses or repeats ticks of fixed times at a change of clocks, so it matches a calendar
//! without changes, and this file finds the moment of each match (`cron.c` and `entry.c` of cron 3.0pl1-162).

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp as Instant};

use crate::model::clock::Timestamp;
use crate::model::error::Error;

/// Start of the search that proves that a pattern has any match.
const EXAMPLE: Timestamp = Timestamp::from_secs(1_700_000_000);
const SECOND: SignedDuration = SignedDuration::from_secs(1);
/// Time within which a change of clocks can repeat a time. Two offsets differ by less.
const AROUND: SignedDuration = SignedDuration::from_hours(48);
/// Names of patterns (crontab(5)).
const NAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Pattern of five fields.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Matches times of the calendar, without a time zone.
    cron: Cron,
    /// True if neither the minute nor the hour begins with `*`.
    is_fixed: bool,
}

impl Pattern {
    /// Parses a pattern, or its name.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the reason.
    pub(crate) fn parse(pattern: &str) -> Result<Self, Error> {
        let hint = "five fields: minute, hour, day of the month, month, day of the week, such as \"0 9 * * mon-fri\"";
        let invalid = |why: String| Error::invalid("cron", format!("{pattern:?}: {why}"), hint);
        if pattern.len() > 200 {
            return Err(Error::invalid("cron", "it is longer than 200 characters", hint));
        }
        let named = NAMES.iter().find(|(name, _)| pattern.trim().eq_ignore_ascii_case(name));
        let fields = named.map_or(pattern, |(_, fields)| *fields);
        let is_star = |field: usize| fields.split_whitespace().nth(field).is_some_and(|f| f.starts_with('*'));
        // With a `*` at the beginning of one of the days, both have to match; without, one of them suffices.
        let both_days = is_star(2) || is_star(4);
        let parser =
            CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).dom_and_dow(both_days);
        let cron = parser.build().parse(fields).map_err(|error| invalid(error.to_string()))?;
        let pattern = Pattern { cron, is_fixed: !is_star(0) && !is_star(1) };
        if pattern.after(EXAMPLE, &TimeZone::UTC).is_none() {
            return Err(invalid("no date matches it".to_owned()));
        }
        Ok(pattern)
    }

    /// Returns the first tick after a time.
    pub(crate) fn after(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let from = instant(time);
        let tick = if self.is_fixed { self.fixed_after(from, zone) } else { self.running_after(from, zone) };
        tick.map(timestamp)
    }

    /// Returns the latest tick at or before a time.
    pub(crate) fn latest(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let to = instant(time);
        let tick = if self.is_fixed { self.fixed_latest(to, zone) } else { self.running_latest(to, zone) };
        tick.map(timestamp)
    }

    fn fixed_after(&self, from: Instant, zone: &TimeZone) -> Option<Instant> {
        let mut civil = zone.to_datetime(from);
        loop {
            civil = self.next(civil, Bound::Excluded)?;
            // In the second pass of a repeated hour the matches ahead were in the first.
            if let Some(at) = first_moment(civil, zone).filter(|at| *at > from) {
                return Some(at);
            }
        }
    }

    fn fixed_latest(&self, to: Instant, zone: &TimeZone) -> Option<Instant> {
        let civil = zone.to_datetime(to);
        // In the second pass of a repeated hour all matches of the first count, also those ahead on the clock.
        let repeated = match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Fold { before, after } => before.duration_since(after),
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => SignedDuration::ZERO,
        };
        let mut civil = civil.checked_add(repeated).ok()?;
        let mut bound = Bound::Included;
        loop {
            civil = self.previous(civil, bound)?;
            bound = Bound::Excluded;
            if let Some(at) = first_moment(civil, zone).filter(|at| *at <= to) {
                return Some(at);
            }
        }
    }

    /// Goes from one change of clocks to the next, until a match comes before the next change.
    fn running_after(&self, from: Instant, zone: &TimeZone) -> Option<Instant> {
        let (mut from, mut bound) = (from, Bound::Excluded);
        loop {
            let offset = zone.to_offset(from);
            let at = offset.to_timestamp(self.next(offset.to_datetime(from), bound)?).ok()?;
            let Some(change) = zone.following(from).next().map(|change| change.timestamp()) else {
                return Some(at);
            };
            if at < change {
                return Some(at);
            }
            // Nothing matches until shortly before the match, unless the change repeats times that have been.
            let is_near = change.duration_since(from) < AROUND;
            let near = at.checked_sub(AROUND).ok()?;
            from = if is_near { change } else { change.max(near) };
            bound = Bound::Included;
        }
    }

    fn running_latest(&self, to: Instant, zone: &TimeZone) -> Option<Instant> {
        let mut to = to;
        loop {
            let offset = zone.to_offset(to);
            let at = offset.to_timestamp(self.previous(offset.to_datetime(to), Bound::Included)?).ok()?;
            let Some(change) = latest_change(to, zone).filter(|change| at < *change) else { return Some(at) };
            let before = change.checked_sub(SECOND).ok()?;
            let near = at.checked_add(AROUND).ok()?;
            to = if to.duration_since(change) < AROUND { before } else { before.min(near) };
        }
    }

    /// Returns the next match on a calendar without changes of clocks.
    fn next(&self, from: DateTime, bound: Bound) -> Option<DateTime> {
        let from = from.to_zoned(TimeZone::UTC).ok()?;
        self.cron.find_next_occurrence(&from, bound == Bound::Included).ok().map(|found| found.datetime())
    }

    fn previous(&self, to: DateTime, bound: Bound) -> Option<DateTime> {
        let to = to.to_zoned(TimeZone::UTC).ok()?;
        self.cron.find_previous_occurrence(&to, bound == Bound::Included).ok().map(|found| found.datetime())
    }
}

/// Treatment of the time from which a search begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Included,
    Excluded,
}

/// Returns the moment of a time of the calendar: the first of two, and the first one after a time that is left out.
pub(crate) fn first_moment(civil: DateTime, zone: &TimeZone) -> Option<Instant> {
    let ambiguous = zone.to_ambiguous_timestamp(civil);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { before, .. } => latest_change(before.to_timestamp(civil).ok()?, zone),
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.compatible().ok(),
    }
}

/// Returns the latest change of clocks at or before a moment.
fn latest_change(at: Instant, zone: &TimeZone) -> Option<Instant> {
    zone.preceding(at.checked_add(SECOND).ok()?).next().map(|change| change.timestamp())
}

/// Returns a moment in whole seconds: no tick is between two seconds.
fn instant(at: Timestamp) -> Instant {
    Instant::from_second(at.as_secs()).unwrap_or_default()
}

fn timestamp(at: Instant) -> Timestamp {
    Timestamp::from_secs(at.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        timestamp(text.parse().unwrap())
    }

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    /// Returns the ticks after one moment and up to another, forwards; backwards they are the same.
    fn ticks(pattern: &str, in_zone: &str, span: [&str; 2]) -> Vec<String> {
        let (pattern, zone, [from, to]) = (Pattern::parse(pattern).unwrap(), zone(in_zone), span.map(at));
        let next = |time: &Timestamp| pattern.after(*time, &zone).filter(|tick| *tick <= to);
        let forwards: Vec<Timestamp> = std::iter::successors(next(&from), next).collect();
        let before =
            |time: Timestamp| pattern.latest(time, &zone).filter(|tick| *tick > from && *tick <= time);
        let less = |time: &Timestamp| before(Timestamp::from_secs(time.as_secs() - 1));
        let mut backwards: Vec<Timestamp> = std::iter::successors(before(to), less).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards, "{in_zone}");
        forwards.into_iter().map(|tick| instant(tick).strftime("%d %H:%M").to_string()).collect()
    }

    const SPRING: [&str; 2] = ["2027-03-27T23:00:00Z", "2027-03-28T04:00:00Z"];
    const AUTUMN: [&str; 2] = ["2027-10-30T22:00:00Z", "2027-10-31T03:00:00Z"];

    #[test]
    fn fixed_times_that_are_left_out_tick_at_the_first_moment_after_them() {
        for (pattern, told) in [
            ("30 2 * * *", &["28 01:00"][..]),
            ("30 2,14 * * *", &["28 01:00"]),
            ("0,30 2 * * *", &["28 01:00"]),
            (
                "0-59/20 1-4 * * *",
                &[
                    "28 00:00", "28 00:20", "28 00:40", "28 01:00", "28 01:20", "28 01:40", "28 02:00",
                    "28 02:20", "28 02:40",
                ],
            ),
            ("30 2 * * sun", &["28 01:00"]),
            ("30 2 28 3 *", &["28 01:00"]),
            ("59 1 * * *", &["28 00:59"]),
            ("0 3 * * *", &["28 01:00"]),
            ("*/30 2 * * *", &[]),
            ("30 */2 * * *", &["27 23:30", "28 02:30"]),
            (
                "*/30 * * * *",
                &[
                    "27 23:30", "28 00:00", "28 00:30", "28 01:00", "28 01:30", "28 02:00", "28 02:30",
                    "28 03:00", "28 03:30", "28 04:00",
                ],
            ),
        ] {
            assert_eq!(ticks(pattern, "Europe/Berlin", SPRING), told, "{pattern}");
        }
    }

    #[test]
    fn fixed_times_that_come_twice_tick_the_first_time() {
        for (pattern, told) in [
            ("30 2 * * *", &["31 00:30"][..]),
            ("30 2,14 * * *", &["31 00:30"]),
            ("0,30 2,3 * * *", &["31 00:00", "31 00:30", "31 02:00", "31 02:30"]),
            ("*/30 2 * * *", &["31 00:00", "31 00:30", "31 01:00", "31 01:30"]),
            ("30 */2 * * *", &["30 22:30", "31 00:30", "31 01:30"]),
            ("@hourly", &["30 23:00", "31 00:00", "31 01:00", "31 02:00", "31 03:00"]),
        ] {
            assert_eq!(ticks(pattern, "Europe/Berlin", AUTUMN), told, "{pattern}");
        }
    }

    #[test]
    fn the_day_of_a_time_is_the_day_on_which_it_is_left_out() {
        let span = ["2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z"];
        assert_eq!(ticks("30 23 * * sat", "America/Nuuk", span), ["28 01:00"]);
        assert_eq!(ticks("30 23 27 3 *", "America/Nuuk", span), ["28 01:00"]);
        // Samoa left out a whole day.
        let span = ["2011-12-29T12:00:00Z", "2012-01-01T00:00:00Z"];
        assert_eq!(
            ticks("0 9 * * *", "Pacific/Apia", span),
            ["29 19:00", "30 10:00", "30 19:00", "31 19:00"]
        );
        assert_eq!(
            ticks("0 */12 * * *", "Pacific/Apia", span),
            ["29 22:00", "30 10:00", "30 22:00", "31 10:00", "31 22:00"]
        );
        // Lord Howe Island moves its clocks by half an hour.
        let span = ["2027-10-02T15:00:00Z", "2027-10-02T16:00:00Z"];
        assert_eq!(ticks("15 2 * * *", "Australia/Lord_Howe", span), ["02 15:30"]);
    }

    #[test]
    fn rare_dates_are_found_over_many_changes_of_clocks() {
        let berlin = zone("Europe/Berlin");
        for (pattern, told) in
            [("0 */6 29 2 *", "2028-02-28T23:00:00Z"), ("30 2 29 2 *", "2028-02-29T01:30:00Z")]
        {
            let pattern = Pattern::parse(pattern).unwrap();
            assert_eq!(pattern.after(at("2024-03-01T00:00:00Z"), &berlin), Some(at(told)));
        }
        let pattern = Pattern::parse("*/30 * 29 2 *").unwrap();
        assert_eq!(pattern.latest(at("2028-01-01T00:00:00Z"), &berlin), Some(at("2024-02-29T22:30:00Z")));
    }

    #[test]
    fn names_steps_and_days_are_those_of_cron() {
        let week = ["2026-11-01T00:00:00Z", "2026-11-08T00:00:00Z"];
        assert_eq!(ticks("@midnight", "UTC", ["2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"]), ["02 00:00"]);
        assert_eq!(ticks("@Weekly", "UTC", week), ["08 00:00"]);
        // A day that begins with `*` has to match as well; of two others one suffices.
        assert_eq!(ticks("0 0 */3 * mon-fri", "UTC", week), ["04 00:00"]);
        assert_eq!(ticks("0 0 7 * */4", "UTC", week), Vec::<String>::new());
        assert_eq!(ticks("0 0 2,3 * fri", "UTC", week), ["02 00:00", "03 00:00", "06 00:00"]);
        assert_eq!(ticks("0 0 1-31/3 * mon", "UTC", week), ["02 00:00", "04 00:00", "07 00:00"]);
        for wrong in
            ["2/4 * * * *", "0 2/4 * * *", "0 0 1/2 * *", "0 0 30 2 *", "@reboot", "@sometimes", "* * * *"]
        {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
