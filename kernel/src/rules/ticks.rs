//! Ticks of schedules: computes the times of a schedule, and selects the due ticks.
//!
//! Calendar times are in the schedule's time zone. A change of clocks can skip a time or repeat it; [`Pattern`] says what
//! becomes of it. A time of `at` is a pattern with a fixed hour and minute.

use std::time::Duration;

use jiff::Zoned;
use jiff::tz::TimeZone;
use sha2::Digest as _;

use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::ScheduleName;
use crate::model::schedule::{Missed, Timing};
use crate::rules::pattern::{Pattern, first_moment};

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

/// Times of a schedule, parsed, with its time zone and bounds.
#[derive(Debug)]
pub(crate) struct Ticks {
    zone: TimeZone,
    sources: Vec<Source>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

#[derive(Debug)]
enum Source {
    Cron(Box<Pattern>),
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
            sources.push(Source::Cron(Box::new(Pattern::parse(pattern)?)));
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
            Source::Cron(pattern) => pattern.after(time, zone),
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
            Source::Cron(pattern) => pattern.latest(time, zone),
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

fn zone(name: Option<&str>) -> Result<TimeZone, Error> {
    let Some(name) = name else { return Ok(TimeZone::system()) };
    TimeZone::get(name).map_err(|error| {
        let hint = "name it as in /usr/share/zoneinfo, such as Europe/Berlin or UTC";
        Error::invalid("time_zone", format!("{name:?}: {error}"), hint)
    })
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
        let at = first_moment(date.to_datetime(clock), zone).ok_or_else(refuse)?;
        return Ok(Source::Once(Timestamp::from_secs(at.as_second())));
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
    let pattern = Pattern::parse(&format!("{} {} * * {day}", clock.minute(), clock.hour()))?;
    Ok(Source::Cron(Box::new(pattern)))
}

#[cfg(test)]
#[path = "ticks_tests.rs"]
mod tests;
