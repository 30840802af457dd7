//! State of the owner loop for `status` and the dashboard: live runs, failures, and the reason for a pause.

use kernel::{BoardName, Finding, FindingCode, Pool, Remedy, Severity, TaskId};
use serde::{Deserialize, Serialize};

use super::backoff::Broken;
use crate::run::live::LiveRun;

/// Reason of every task while dispatch is disabled.
pub(crate) const DISABLED: &str =
    "dispatch.enabled is false in the configuration; set it to true, then `supervisor service reload`";

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

impl Snapshot {
    /// Returns the findings that no task starts, with the reason.
    pub fn state_findings(&self) -> Vec<Finding> {
        let paused = self.paused.as_deref().map(|why| {
            let finding = if why == DISABLED {
                Finding::error(FindingCode::DispatchDisabled, "nothing is started")
                    .remedy(Remedy::command("read the configuration again", "service reload").suggested())
            } else {
                Finding::new(FindingCode::DispatchPaused, Severity::Critical, "nothing is started")
                    .remedy(Remedy::command("check the host and the root", "doctor").suggested())
            };
            finding.detail(why)
        });
        let stopping = self.stopping.as_deref();
        let stopping =
            stopping.map(|mode| Finding::error(FindingCode::DaemonStopping, "it is stopping").detail(mode));
        paused.into_iter().chain(stopping).map(|finding| finding.about("the daemon")).collect()
    }

    /// Returns the findings about environments and breakers that keep several tasks from starting.
    pub fn broken_findings(&self) -> impl Iterator<Item = Finding> {
        self.broken.iter().map(Broken::finding)
    }
}
