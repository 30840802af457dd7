//! Times of a schedule as arguments of a command or a chat message.

use base::time::duration::WrittenDuration;

/// Times of a schedule. At least `cron`, `every` or `at` is given.
#[derive(Clone, Debug, clap::Args)]
pub struct TimesText {
    /// Ticks by minute, hour, day of the month, month and day of the week
    #[arg(long, value_name = "PATTERN")]
    pub cron: Option<String>,
    /// Ticks by a period such as 15m
    #[arg(long, value_name = "DURATION")]
    pub every: Option<WrittenDuration>,
    /// Ticks at 07:00, 'mon 07:00' or '2026-12-24 18:00' (repeatable)
    #[arg(long, value_name = "TIME")]
    pub at: Vec<String>,
    /// The zone of these times, such as Europe/Berlin [default: the zone of the host]
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Option<String>,
}
