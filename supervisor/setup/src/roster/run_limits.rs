//! Limits on a run: its runtime, its time without progress, and the number of consecutive failures that block its
//! task.
//!
//! The more specific setting takes precedence: the task's, then its profile's, its lane's and the configuration's. For
//! a check, the limit of checks precedes all of these. No run exceeds the limit of its tenant. Claims and `show` call
//! the same function.
//!
//! The limit of a tenant is a bound and not a default, because the workers of a tenant create its tasks. The limit of a
//! run is stored with its source when the run starts, so a reload does not change live runs.

use std::time::Duration;

use kernel::{LimitSource, Task, TimeLimit};

use super::ProfileDefinition;
use crate::config::Config;
use crate::lanes::Lane;
use base::time::duration::WrittenDuration;

/// Limits on the runs of an assignee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Runtime limit, unless the task or its tenant sets one.
    pub(super) max_runtime: TimeLimit,
    /// Longest time without progress; none for no limit.
    pub idle_limit: Option<Duration>,
    /// Number of consecutive counted failures that block a task, unless the task sets one.
    pub failure_limit: u32,
}

impl RunLimits {
    pub(super) fn from_config(config: &Config) -> Self {
        let limit = config.worker.max_runtime.duration();
        RunLimits {
            max_runtime: TimeLimit { limit, from: LimitSource::Configuration },
            idle_limit: config.worker.idle_limit.map(WrittenDuration::duration),
            failure_limit: config.worker.failure_limit.get(),
        }
    }

    /// Returns these limits with the limits of a lane, and with precedence over these the limits of a profile.
    pub(super) fn with(self, lane: &Lane, definition: Option<&ProfileDefinition>) -> Self {
        let of_lane = lane.max_runtime.map(|limit| (limit, LimitSource::Lane));
        let of_profile =
            definition.and_then(ProfileDefinition::max_runtime).map(|limit| (limit, LimitSource::Profile));
        let max_runtime = of_profile.or(of_lane).map(|(limit, from)| TimeLimit { limit, from });
        RunLimits {
            max_runtime: max_runtime.unwrap_or(self.max_runtime),
            idle_limit: definition
                .and_then(ProfileDefinition::idle_limit)
                .or(lane.idle_limit)
                .or(self.idle_limit),
            ..self
        }
    }

    /// Returns the runtime limit of a task's next run. The next run is a check if work of the task waits for its
    /// check.
    pub fn time_limit(&self, task: &Task, config: &Config) -> TimeLimit {
        let of_check = config.check.max_runtime.filter(|_| task.unchecked_run.is_some());
        let of_check = of_check.map(WrittenDuration::duration);
        let of_tenant = task.tenant.as_ref().and_then(|tenant| config.runtime.most(tenant));
        self.among(of_check, task.limits.max_runtime, of_tenant)
    }

    fn among(&self, check: Option<Duration>, task: Option<Duration>, tenant: Option<Duration>) -> TimeLimit {
        let limit_from = |limit: Option<Duration>, from| limit.map(|limit| TimeLimit { limit, from });
        let stated = limit_from(check, LimitSource::Check).or(limit_from(task, LimitSource::Task));
        let effective = stated.unwrap_or(self.max_runtime);
        limit_from(tenant, LimitSource::Tenant)
            .filter(|most| most.limit < effective.limit)
            .unwrap_or(effective)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_specific_limit_holds_and_a_tenant_bounds_all_of_them() {
        let config: Config = toml::from_str("[worker]\nmax_runtime = \"4h\"").unwrap();
        let limits = RunLimits::from_config(&config);
        let hours = |hours: u64| Some(Duration::from_hours(hours));
        for (check, task, tenant, limit, from) in [
            (None, None, None, 4, LimitSource::Configuration),
            (None, hours(9), None, 9, LimitSource::Task),
            (hours(7), hours(9), None, 7, LimitSource::Check),
            (hours(7), hours(9), hours(8), 7, LimitSource::Check),
            (None, hours(9), hours(8), 8, LimitSource::Tenant),
            (None, hours(9), hours(9), 9, LimitSource::Task),
            (None, None, hours(1), 1, LimitSource::Tenant),
            (None, None, hours(5), 4, LimitSource::Configuration),
        ] {
            let shortest = limits.among(check, task, tenant);
            assert_eq!(
                (shortest.limit.as_secs() / 3600, shortest.from),
                (limit, from),
                "{check:?} {task:?} {tenant:?}"
            );
        }
    }
}
