//! Ticks of schedules: computes the times of a schedule, and selects the due ticks.
//!
//! Calendar times are in the schedule's time zone. A change of clocks can skip a time or repeat it. For `at`, and for a
//! pattern with a fixed hour and minute, a skipped time moves to the first time after the change, and a repeated time
//! ticks once, at the first occurrence. Any other pattern leaves out a skipped time and ticks at both occurrences of a
//! repeated time (croner, as Vixie cron).

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Zoned;
use jiff::tz::TimeZone;
use sha2::Digest as _;

use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::ScheduleName;
use crate::model::schedule::{Missed, Timing};

/// Time for which a tick is on time, unless the next tick comes first. Later it counts as missed.
const GRACE: Duration = Duration::from_mins(1);
/// Largest number of missed ticks that are made up for.
pub(crate) const MADE_UP: usize = 1000;
/// Largest number of ticks that are counted at once. More would block the board's writer for too long.
const COUNTED: u64 = 10_000;
/// Largest number of calendar times of a schedule.
const TIMES: usize = 100;
/// Longest period, in seconds: ten years.
const LONGEST: u64 = 10 * 366 * 86_400;
/// Smallest difference between two times.
const NEXT: Duration = Duration::from_micros(1);

/// Ticks of a schedule.
#[derive(Debug)]
pub(crate) struct Ticks {
    zone: TimeZone,
    sources: Vec<Source>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

/// Source of ticks.
#[derive(Debug)]
enum Source {
    Cron(Box<Cron>),
    /// Fixed interval in microseconds, from a start time on.
    Every {
        from: i64,
        period: i64,
    },
    Once(Timestamp),
}

/// Due ticks of a schedule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Ticks to make, oldest first.
    pub(crate) make: Vec<Timestamp>,
    /// Number of missed ticks.
    pub(crate) missed: u64,
    /// True if more ticks were missed than were counted.
    pub(crate) more: bool,
    /// Latest due tick; none when no tick is due.
    pub(crate) through: Option<Timestamp>,
}

impl Ticks {
    /// Parses the timing of a schedule.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the key.
    pub(crate) fn parse(timing: &Timing) -> Result<Self, Error> {
        let zone = zone(timing.time_zone.as_deref())?;
        let mut sources = Vec::new();
        if let Some(pattern) = &timing.cron {
            sources.push(Source::Cron(Box::new(cron(pattern)?)));
        }
        if let Some(period) = timing.every {
            let seconds = period.as_secs();
            if !(1..=LONGEST).contains(&seconds) {
                let why = format!("{seconds} s: a period is 1 s to 10 years");
                return Err(Error::invalid("every", why, "write it as 30s, 15m, 6h or 1d"));
            }
            let period = i64::try_from(seconds).unwrap_or(1).saturating_mul(1_000_000);
            sources.push(Source::Every { from: timing.start.unwrap_or_default().as_micros(), period });
        }
        if timing.at.len() > TIMES {
            let why = format!("{} times, the limit is {TIMES}", timing.at.len());
            return Err(Error::invalid("at", why, "write a pattern: cron = \"…\""));
        }
        for text in &timing.at {
            sources.push(time(text, &zone)?);
        }
        if sources.is_empty() {
            let hint = "write cron = \"0 9 * * mon-fri\", every = \"15m\" or at = [\"07:00\"]";
            return Err(Error::invalid("cron", "it does not say when it ticks", hint));
        }
        if timing.start.zip(timing.end).is_some_and(|(start, end)| end < start) {
            return Err(Error::invalid("end", "it is before the start", "name a later time"));
        }
        Ok(Self { zone, sources, start: timing.start, end: timing.end })
    }

    /// Returns the first tick after a time.
    pub(crate) fn after(&self, time: Timestamp) -> Option<Timestamp> {
        let time = self.start.map_or(time, |start| time.max(start.before(NEXT)));
        let next = self.sources.iter().filter_map(|source| source.after(time, &self.zone)).min()?;
        self.end.is_none_or(|end| next <= end).then_some(next)
    }

    /// Returns the latest tick at or before a time.
    pub(crate) fn latest(&self, time: Timestamp) -> Option<Timestamp> {
        let time = self.end.map_or(time, |end| time.min(end));
        let last = self.sources.iter().filter_map(|source| source.latest(time, &self.zone)).max()?;
        self.start.is_none_or(|start| last >= start).then_some(last)
    }

    /// Selects the ticks after `decided`, up to `now`.
    pub(crate) fn due(&self, missed: Missed, decided: Timestamp, now: Timestamp) -> Due {
        let most = if missed == Missed::All { MADE_UP } else { 1 };
        let mut due = Due::default();
        // Walk backwards from now: the latest ticks matter most, and counting stops at a limit.
        let (mut count, mut until) = (0, now);
        while let Some(tick) = self.latest(until).filter(|tick| *tick > decided) {
            if count == COUNTED {
                due.more = true;
                break;
            }
            count += 1;
            due.through = due.through.or(Some(tick));
            if due.make.len() < most {
                due.make.push(tick);
            }
            until = tick.before(NEXT);
        }
        if missed == Missed::Skip {
            due.make.retain(|tick| now.since(*tick) <= GRACE);
        }
        due.make.reverse();
        due.missed = count.saturating_sub(u64::try_from(due.make.len()).unwrap_or(u64::MAX));
        due
    }

    /// Returns a time in the schedule's zone.
    pub(crate) fn zoned(&self, at: Timestamp) -> Zoned {
        zoned(at, &self.zone)
    }
}

impl Source {
    fn after(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Source::Cron(cron) => {
                let found = cron.find_next_occurrence(&zoned(time, zone), false).ok()?;
                Some(instant(&found)).filter(|tick| *tick > time)
            }
            Source::Every { from, period } => {
                let gone = time.as_micros().saturating_sub(*from).div_euclid(*period);
                let periods = gone.saturating_add(1).max(0);
                Some(Timestamp::from_micros(from.saturating_add(periods.saturating_mul(*period))))
            }
            Source::Once(at) => Some(*at).filter(|at| *at > time),
        }
    }

    fn latest(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Source::Cron(cron) => {
                let found = cron.find_previous_occurrence(&zoned(time, zone), true).ok()?;
                Some(instant(&found)).filter(|tick| *tick <= time)
            }
            Source::Every { from, period } => {
                let gone = time.as_micros().checked_sub(*from)?.div_euclid(*period);
                (gone >= 0).then(|| Timestamp::from_micros(from.saturating_add(gone * period)))
            }
            Source::Once(at) => Some(*at).filter(|at| *at <= time),
        }
    }
}

/// Returns the delay of a tick's tasks, which is the same whenever it is computed.
pub(crate) fn jitter(most: Option<Duration>, schedule: &ScheduleName, tick: Timestamp) -> Duration {
    most.map(|most| spread(most, &format!("{schedule}\0{}", tick.as_micros()))).unwrap_or_default()
}

/// Returns a duration in whole seconds, up to `most`: the same for the same name, and evenly spread over many names.
pub fn spread(most: Duration, name: &str) -> Duration {
    let digest = sha2::Sha256::digest(name);
    let drawn = digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
    Duration::from_secs(drawn % most.as_secs().saturating_add(1))
}

fn zoned(at: Timestamp, zone: &TimeZone) -> Zoned {
    // Whole seconds: no tick is between two seconds.
    jiff::Timestamp::from_second(at.as_secs()).unwrap_or_default().to_zoned(zone.clone())
}

fn instant(zoned: &Zoned) -> Timestamp {
    Timestamp::from_secs(zoned.timestamp().as_second())
}

fn zone(name: Option<&str>) -> Result<TimeZone, Error> {
    let Some(name) = name else { return Ok(TimeZone::system()) };
    TimeZone::get(name).map_err(|error| {
        let hint = "name it as in /usr/share/zoneinfo, such as Europe/Berlin or UTC";
        Error::invalid("time_zone", format!("{name:?}: {error}"), hint)
    })
}

/// Start of the search that proves that a pattern has any match.
const EXAMPLE: Timestamp = Timestamp::from_secs(1_700_000_000);

fn cron(pattern: &str) -> Result<Cron, Error> {
    let hint =
        "five fields: minute, hour, day of the month, month, day of the week, such as \"0 9 * * mon-fri\"";
    let invalid = |why: String| Error::invalid("cron", format!("{pattern:?}: {why}"), hint);
    if pattern.len() > 200 {
        return Err(Error::invalid("cron", "it is longer than 200 characters", hint));
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let cron = parser.parse(pattern).map_err(|error| invalid(error.to_string()))?;
    if cron.find_next_occurrence(&zoned(EXAMPLE, &TimeZone::UTC), true).is_err() {
        return Err(invalid("no date matches it".to_owned()));
    }
    Ok(cron)
}

/// Parses a calendar time.
fn time(text: &str, zone: &TimeZone) -> Result<Source, Error> {
    let refuse = || {
        let hint = "write 07:00 for each day, mon 07:00 for each week, or 2026-12-24 18:00 for one day";
        Error::invalid("at", format!("{:?} is not a time", text.chars().take(80).collect::<String>()), hint)
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let (day, clock) = match words.as_slice() {
        [clock] => (None, *clock),
        [day, clock] => (Some(*day), *clock),
        _ => return Err(refuse()),
    };
    let clock: jiff::civil::Time = clock.parse().map_err(|_| refuse())?;
    if let Some(date) = day.and_then(|day| day.parse::<jiff::civil::Date>().ok()) {
        let at = zone.to_ambiguous_zoned(date.to_datetime(clock)).compatible().map_err(|_| refuse())?;
        return Ok(Source::Once(instant(&at)));
    }
    if clock.second() != 0 || clock.subsec_nanosecond() != 0 {
        return Err(refuse());
    }
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let day = match day.map(str::to_ascii_lowercase) {
        None => "*".to_owned(),
        Some(day) if days.contains(&day.as_str()) => day,
        Some(_) => return Err(refuse()),
    };
    cron(&format!("{} {} * * {day}", clock.minute(), clock.hour())).map(|cron| Source::Cron(Box::new(cron)))
}

#[cfg(test)]
#[path = "ticks_tests.rs"]
mod tests;
