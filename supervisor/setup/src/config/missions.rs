//! `[missions]`: limits on a task together with all tasks that workers make below it. A mission that reaches a limit
//! waits for a person.

use kernel::MissionLimits;
use serde::Deserialize;

use super::budgets::micros;
use base::time::duration::WrittenDuration;

/// Limits of each mission. Reloaded on SIGHUP. An absent limit has its default.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MissionConfig {
    /// Depth of tasks that workers make below the first task.
    depth: Option<u32>,
    /// Number of tasks, including the first.
    tasks: Option<u64>,
    /// Total runtime of all runs.
    runtime: Option<WrittenDuration>,
    /// Cost in US dollars; stored in millionths.
    #[serde(deserialize_with = "micros")]
    cost_usd: Option<u64>,
}

impl MissionConfig {
    /// Returns the limits for the boards.
    pub(super) fn limits(&self) -> MissionLimits {
        let default = MissionLimits::default();
        MissionLimits {
            depth: self.depth.unwrap_or(default.depth),
            tasks: self.tasks.unwrap_or(default.tasks),
            runtime: self.runtime.map_or(default.runtime, WrittenDuration::duration),
            cost_micros: self.cost_usd.unwrap_or(default.cost_micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_said_replaces_the_default_and_nothing_else() {
        let read = |text: &str| toml::from_str::<MissionConfig>(text).unwrap().limits();
        assert_eq!(read(""), MissionLimits::default());
        assert_eq!(
            read("depth = 2\ntasks = 5\nruntime = \"2h\"\ncost_usd = 7.25\n"),
            MissionLimits { depth: 2, tasks: 5, runtime: Duration::from_hours(2), cost_micros: 7_250_000 }
        );
        assert!(toml::from_str::<MissionConfig>("hours = 3").is_err());
    }
}
