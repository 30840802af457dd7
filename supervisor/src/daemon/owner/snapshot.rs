//! State of the owner loop, for display: live runs, failures, and the reason for a pause.

use kernel::{BoardName, Pool, TaskId};
use serde::{Deserialize, Serialize};

use super::backoff::Broken;
use crate::daemon::run::live::LiveRun;

/// A ready task that was not admitted, with the reason.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) board: BoardName,
    pub(crate) task: TaskId,
    pub(crate) why: kernel::Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PoolUse {
    pub(crate) name: Pool,
    /// Number of places in use.
    pub(crate) taken: usize,
    /// Number of places; none if the configuration has no such pool.
    pub(crate) places: Option<usize>,
}

/// State of the daemon at one time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Live runs, oldest first.
    pub(crate) live: Vec<LiveRun>,
    /// Reason why nothing is started, during a pause.
    pub(crate) paused: Option<String>,
    /// Description of the stop in progress.
    pub(crate) stopping: Option<String>,
    /// Use of each pool.
    pub(crate) pools: Vec<PoolUse>,
    /// Failures that affect several tasks.
    pub(crate) broken: Vec<Broken>,
    /// Number of wake-ups of the owner loop since its start.
    pub(crate) wakeups: u64,
}
