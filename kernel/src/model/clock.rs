//! Time for a board: an injected clock, microseconds inside the board, whole epoch seconds in JSON.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::words::schema;

/// Moment in microseconds since the epoch, UTC. JSON carries whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// End of the year 9999: the time of a wait that only a person ends.
    pub const OPEN_END: Self = Self(253_402_300_799_000_000);

    /// Creates a moment from microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Creates a moment from whole seconds since the epoch; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Returns microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Returns the moment `duration` later; saturates.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// Returns the moment `duration` earlier; saturates.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    /// Returns the time that has passed since `earlier`; zero when `earlier` lies in the future.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.as_secs())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Self::from_secs)
    }
}

schema!(Timestamp, { "type": "integer", "description": "seconds since the epoch, UTC" });

/// Calendar day of a time zone, for budgets of a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    /// Date, such as `2026-05-01`.
    pub date: String,
    /// Start of the next day.
    pub ends_at: Timestamp,
}

impl Day {
    /// Returns the day of a moment on the host's calendar.
    pub(crate) fn of_host(at: Timestamp) -> Self {
        Self::in_zone(at, jiff::tz::TimeZone::system())
    }

    /// Returns the day of a moment in a time zone.
    fn in_zone(at: Timestamp, zone: jiff::tz::TimeZone) -> Self {
        let zoned = jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or_default().to_zoned(zone);
        let next = zoned.tomorrow().and_then(|next| next.start_of_day());
        let ends_at = next.map_or(Timestamp::OPEN_END, |next| Timestamp(next.timestamp().as_microsecond()));
        Day { date: zoned.date().to_string(), ends_at }
    }
}

/// Returns the date of a moment on the host's calendar, such as `2026-05-01`.
pub fn day_of(at: Timestamp) -> String {
    Day::in_zone(at, jiff::tz::TimeZone::system()).date
}

/// Source of time.
pub trait Clock: Send + Sync {
    /// Returns the real time. People read it, and `not_before` is compared with it.
    fn now(&self) -> Timestamp;
    /// Returns the current calendar day, for budgets of a day.
    fn day(&self) -> Day;
    /// Returns the time since boot, suspend included, for deadlines and leases.
    fn boottime(&self) -> Duration;
    /// Returns the id of this boot. A boot time has no meaning under another boot id.
    fn boot_id(&self) -> String;
}

/// The host's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    /// Returns the day in the host's time zone.
    fn day(&self) -> Day {
        Day::in_zone(self.now(), jiff::tz::TimeZone::system())
    }

    fn boottime(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    }

    fn boot_id(&self) -> String {
        static BOOT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
        let read = || {
            std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
        };
        BOOT.get_or_init(read).clone()
    }
}

/// Clock for tests, moved only by its methods.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<(Timestamp, Duration, String)>,
}

impl ManualClock {
    /// Creates a clock that stands at `now`, one hour after boot.
    pub fn new(now: Timestamp) -> Self {
        Self { state: Mutex::new((now, Duration::from_hours(1), "boot-1".to_owned())) }
    }

    /// Moves the real time and the boot time forward.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        state.0 = state.0.after(by);
        state.1 += by;
    }

    /// Sets the real time alone, as an administrator may do at any moment.
    pub fn set(&self, now: Timestamp) {
        self.lock().0 = now;
    }

    /// Starts another boot: the boot time falls back to zero under a new id.
    pub fn reboot(&self, boot_id: &str) {
        let mut state = self.lock();
        state.1 = Duration::ZERO;
        boot_id.clone_into(&mut state.2);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Timestamp, Duration, String)> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new(Timestamp::from_secs(1_700_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().0
    }

    /// Returns the day in UTC.
    fn day(&self) -> Day {
        Day::in_zone(self.now(), jiff::tz::TimeZone::UTC)
    }

    fn boottime(&self) -> Duration {
        self.lock().1
    }

    fn boot_id(&self) -> String {
        self.lock().2.clone()
    }
}

/// Serde for moments in the board's own records, where whole seconds would lose precision.
pub(crate) mod micros {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Timestamp;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(at.as_micros())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp::from_micros)
    }
}

/// Serde for an optional duration in whole seconds.
pub(crate) mod optional_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_secs()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_secs))
    }
}
