//! State of a live worker, in one word: the rule for every display.

use kernel::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use daemon::{LiveRun, Phase};

/// A worker without progress for so long is quiet, in seconds.
const QUIET: u64 = 600;

/// Phase of a worker, or the reason why a person should look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerHealth {
    /// The worker is being started.
    Starting,
    /// The worker runs.
    #[default]
    Healthy,
    /// The worker has shown no progress for 10 minutes.
    Quiet,
    /// Its time is over, and it is being ended.
    Overdue,
    /// The worker was asked to end, or has ended.
    Ending,
    /// Something keeps its end from the board, or its processes from ending.
    Stuck,
}

impl WorkerHealth {
    /// Returns the state of a run with so many seconds left until its deadline.
    pub(super) fn assess(run: &LiveRun, left: Option<u64>, now: Timestamp) -> Self {
        health(run.phase, left, run.last_heartbeat_at.unwrap_or(run.started_at), now)
    }
}

fn health(phase: Phase, left: Option<u64>, progress: Timestamp, now: Timestamp) -> WorkerHealth {
    match phase {
        Phase::Starting => WorkerHealth::Starting,
        Phase::Ending => WorkerHealth::Ending,
        Phase::Settling | Phase::Unkillable | Phase::Unknown => WorkerHealth::Stuck,
        Phase::Running if left == Some(0) => WorkerHealth::Overdue,
        Phase::Running if now.since(progress).as_secs() >= QUIET => WorkerHealth::Quiet,
        Phase::Running => WorkerHealth::Healthy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_quiet_without_progress_and_overdue_without_time() {
        let at = Timestamp::from_secs;
        let of = |phase, left, progress| health(phase, left, at(progress), at(10_000));
        assert_eq!(of(Phase::Running, Some(5), 9_900), WorkerHealth::Healthy);
        assert_eq!(of(Phase::Running, None, 9_400), WorkerHealth::Quiet);
        assert_eq!(of(Phase::Running, Some(0), 9_400), WorkerHealth::Overdue);
        assert_eq!(of(Phase::Ending, Some(0), 0), WorkerHealth::Ending);
        assert_eq!(of(Phase::Unkillable, None, 9_999), WorkerHealth::Stuck);
    }
}
