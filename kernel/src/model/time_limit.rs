//! Time limit of a run, and the setting that it comes from.

use std::time::Duration;

use crate::model::words::words;

words! {
    /// Setting that the time limit of a run comes from.
    "source of a limit"
    LimitSource {
        Task => "task",
        /// The table of checks in the configuration.
        Check => "check",
        Profile => "profile",
        Lane => "lane",
        /// The tenant of the task, as an upper bound for all its runs.
        Tenant => "tenant",
        Configuration => "configuration",
    }
}

/// Longest duration of a run, and the setting that gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// Longest duration of the run.
    pub limit: Duration,
    /// Setting that the limit comes from.
    pub from: LimitSource,
}
