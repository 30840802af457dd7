//! Missions: a task that a person made with all tasks that workers make below it, and how far one may go.

use std::time::Duration;

use crate::model::words::words;

words! {
    /// What of a mission is limited, by its key in `[missions]` of `supervisor.toml`.
    "mission limit"
    MissionLimit {
        /// Its tasks, with the first one.
        Tasks => "tasks",
        /// The time that its runs have taken together.
        Runtime => "runtime",
        /// What its agents say that they have cost.
        Cost => "cost_usd",
    }
}

/// How far a mission may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissionLimits {
    /// How many tasks deep workers may make tasks below the first one.
    pub depth: u32,
    /// How many tasks it may have, with the first one.
    pub tasks: u64,
    /// How long its runs may take together.
    pub runtime: Duration,
    /// What it may cost, in millionths of a US dollar.
    pub cost_micros: u64,
}

impl Default for MissionLimits {
    fn default() -> Self {
        Self { depth: 3, tasks: 20, runtime: Duration::from_hours(100), cost_micros: 100_000_000 }
    }
}

/// What a mission has used, and how often it was granted as much again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) tasks: u64,
    pub(crate) runtime: Duration,
    pub(crate) cost_micros: u64,
    pub(crate) more_tasks: u64,
    pub(crate) more_runtime: u64,
    pub(crate) more_cost: u64,
}
