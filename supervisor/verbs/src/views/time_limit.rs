//! Time limit of a task's run, present or next, and its source: for `show`.

use std::time::Duration;

use kernel::{Clock as _, LimitSource, Run, Status, SystemClock, Task, TimeLimit, Timestamp, brief};
use serde::{Deserialize, Serialize};

use api::Call;
use base::time::timestamp;
use setup::lanes::check_performer;

/// The time limit of the current or the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimitLine {
    pub seconds: u64,
    /// Source of the limit.
    pub from: LimitSource,
    /// Latest end of the run; none without a run.
    pub until: Option<Timestamp>,
}

impl TimeLimitLine {
    /// Returns the limit of the present run, if there is one with a limit.
    pub(crate) fn of_open(runs: &[Run]) -> Option<Self> {
        let run = runs.iter().find(|run| run.ended_at.is_none())?;
        let seconds = run.max_runtime_seconds?;
        let until = Some(run.started_at.after(Duration::from_secs(seconds)));
        Some(TimeLimitLine { seconds, from: run.max_runtime_from?, until })
    }

    /// Returns the limit that the next run of a task would have at present.
    pub(crate) fn of_next(call: &Call, task: &Task) -> Option<Self> {
        let performer = match task.status {
            Status::Review if task.unchecked_run.is_some() => Some(check_performer()),
            Status::Review => task.reviewer.clone(),
            Status::Triage | Status::Todo | Status::Scheduled | Status::Ready | Status::Blocked => {
                task.assignee.clone()
            }
            Status::Running | Status::Done | Status::Archived => None,
        };
        let (roster, config) = (call.service.roster(), call.service.config());
        let resolved = roster.resolve(&performer?, task.policy.as_deref(), &config).ok()?;
        let TimeLimit { limit, from } = resolved.limits.time_limit(task, &config);
        Some(TimeLimitLine { seconds: limit.as_secs(), from, until: None })
    }

    /// Returns the limit in words.
    pub(crate) fn words(&self) -> String {
        let by = match self.from {
            LimitSource::Task => ", set by the task",
            LimitSource::Check => ", as check.max_runtime says",
            LimitSource::Profile => ", set by its profile",
            LimitSource::Lane => ", set by its lane",
            LimitSource::Tenant => ", the limit of its tenant",
            LimitSource::Configuration => ", as worker.max_runtime says",
        };
        let until = self.until.map(|at| format!(" (until {})", timestamp::soon(at, SystemClock.now())));
        format!("{}{by}{}", brief(Duration::from_secs(self.seconds)), until.unwrap_or_default())
    }
}
