//! Times of a schedule as arguments of a command or a chat message.

use base::time::duration::WrittenDuration;

/// One of `cron`, `every` and `at` at least.
#[derive(Clone, Debug, clap::Args)]
pub struct TimesText {
    /// When: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "PATTERN")]
    pub cron: Option<String>,
    /// When: a period such as 15m
    #[arg(long, value_name = "DURATION")]
    pub every: Option<WrittenDuration>,
    /// When: 07:00, 'mon 07:00' or '2026-12-24 18:00' (repeatable)
    #[arg(long, value_name = "TIME")]
    pub at: Vec<String>,
    /// The zone of these times, such as Europe/Berlin [default: that of the host]
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Option<String>,
}
