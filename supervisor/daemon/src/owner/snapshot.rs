//! State of the owner loop for `status` and the dashboard: live runs, failures, and the reason for a pause.

use kernel::{BoardName, Pool, TaskId};
use serde::{Deserialize, Serialize};

use super::backoff::Broken;
use crate::run::live::LiveRun;

/// A ready task that was not admitted, with the reason.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnadmittedTask {
    pub board: BoardName,
    pub task: TaskId,
    pub why: kernel::Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolUse {
    pub name: Pool,
    /// Number of places in use.
    pub taken: usize,
    /// Number of places; none if the configuration has no such pool.
    pub places: Option<usize>,
}

/// State of the daemon at one time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Live runs, oldest first.
    pub live: Vec<LiveRun>,
    /// Reason why nothing is started; none unless starts are paused.
    pub paused: Option<String>,
    /// Description of the stop in progress; none unless the daemon is stopping.
    pub stopping: Option<String>,
    /// Use of each pool.
    pub pools: Vec<PoolUse>,
    /// Failures that affect several tasks.
    pub broken: Vec<Broken>,
    /// Number of events that the owner loop has handled since its start. Requests of the watchdog, and the further
    /// requests of one `status`, do not count.
    pub wakeups: u64,
}
