//! What the owner loop shows of itself: the live runs, what is broken, and why nothing is started.

use kernel::{BoardName, Pool, TaskId};
use serde::{Deserialize, Serialize};

use super::backoff::Broken;
use crate::daemon::run::live::LiveRun;

/// A ready task that was not admitted, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) board: BoardName,
    pub(crate) task: TaskId,
    pub(crate) why: kernel::Waiting,
}

/// How much of a pool is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PoolUse {
    pub(crate) name: Pool,
    /// The places that runs have.
    pub(crate) taken: usize,
    /// The places that there are; none where the configuration has no such pool.
    pub(crate) places: Option<usize>,
}

/// The daemon at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// The live runs, oldest first.
    pub(crate) live: Vec<LiveRun>,
    /// Why nothing is started, where nothing is.
    pub(crate) paused: Option<String>,
    /// Whether the daemon is stopping.
    pub(crate) stopping: Option<String>,
    /// How much of each pool is taken.
    pub(crate) pools: Vec<PoolUse>,
    /// What several tasks need and what does not work.
    pub(crate) broken: Vec<Broken>,
    /// How often the owner loop has woken up since the start.
    pub(crate) wakeups: u64,
}
