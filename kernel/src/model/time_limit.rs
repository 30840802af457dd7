//! How long a run may take, and what sets that.

use std::time::Duration;

use crate::model::words::words;

words! {
    /// Who has set the time limit of a run.
    "source of a limit"
    LimitSource {
        /// The task.
        Task => "task",
        /// What the configuration says of checks.
        Check => "check",
        /// The profile of its worker.
        Profile => "profile",
        /// The lane of its worker.
        Lane => "lane",
        /// The tenant of the task, whose runs may take no longer.
        Tenant => "tenant",
        /// What the configuration says of all others.
        Configuration => "configuration",
    }
}

/// The time limit of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// How long it may take.
    pub limit: Duration,
    /// What sets it.
    pub from: LimitSource,
}
