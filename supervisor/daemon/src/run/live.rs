//! Live runs, as the owner loop knows them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::{BoardName, Egress, Profile, Purpose, Run, RunId, Spent, Task, TaskId, Tenant, Timestamp};
use serde::{Deserialize, Serialize};
use shim::rundir::RunDir;

use host::watch::Watched;

/// Stage in the life of a run, as `status` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Claimed; its workspace and its shim are being made.
    Starting,
    /// Its command runs.
    Running,
    /// Asked to end, has given its verdict, or has ended and is being recorded on its board.
    Ending,
    /// Ended, with a problem that keeps the end from its board.
    Settling,
    /// SIGKILL does not end its processes.
    Unkillable,
    /// Its shim has gone, and the end of its processes cannot be proved.
    Unknown,
}

impl Phase {
    /// Returns true if no action of a daemon ends the run. Such a run keeps its claim and its directory and takes no
    /// slot, and a daemon that stops leaves it to the next one.
    pub fn is_out_of_reach(self) -> bool {
        match self {
            Phase::Unkillable | Phase::Unknown => true,
            Phase::Starting | Phase::Running | Phase::Ending | Phase::Settling => false,
        }
    }
}

/// A run in the daemon's hands, as `status` and `top` show it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LiveRun {
    pub board: BoardName,
    pub task: TaskId,
    pub title: String,
    pub run: RunId,
    #[serde(default)]
    pub purpose: Purpose,
    /// Depth of its task, if that is a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consult: Option<u32>,
    /// Assignee that works on the task.
    pub profile: Option<Profile>,
    pub tenant: Option<Tenant>,
    pub phase: Phase,
    /// Pid of the worker, once it runs.
    pub pid: Option<i32>,
    /// Time of the claim.
    pub started_at: Timestamp,
    /// Deadline, in microseconds of `CLOCK_BOOTTIME`.
    pub deadline_us: Option<u64>,
    /// Time of the worker's last sign of progress.
    pub last_heartbeat_at: Option<Timestamp>,
    /// Workspace as the task names it.
    pub workspace: String,
    pub workspace_path: Option<PathBuf>,
    pub cgroup: Option<PathBuf>,
    /// Layers that its sandbox enforces, in one line.
    pub sandbox: Option<String>,
    /// True if a layer of its sandbox is partial or missing.
    #[serde(default)]
    pub sandbox_lacks: bool,
    /// Names of those layers, each with its state.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub lacks: BTreeSet<String>,
    /// Usage so far, as reported by its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// Traffic of its proxy so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Reason for a delay, if any.
    pub note: Option<String>,
}

impl LiveRun {
    /// Describes a run from its board's record and its task.
    pub fn from_run(board: &BoardName, run: &Run, task: Option<&Task>) -> Self {
        LiveRun {
            board: board.clone(),
            task: run.task_id.clone(),
            title: task.map(|task| task.title.clone()).unwrap_or_default(),
            run: run.id,
            purpose: run.purpose,
            consult: task.and_then(|task| task.lineage.consult),
            profile: run.profile.clone(),
            tenant: run.tenant.clone(),
            phase: if run.worker_pid.is_some() { Phase::Running } else { Phase::Starting },
            pid: run.worker_pid,
            started_at: run.started_at,
            deadline_us: None,
            last_heartbeat_at: run.last_heartbeat_at,
            workspace: task.map(|task| task.workspace.clone()).unwrap_or_default(),
            workspace_path: run.workspace_path.as_ref().map(Into::into),
            cgroup: None,
            sandbox: None,
            sandbox_lacks: false,
            lacks: BTreeSet::new(),
            spent: run.spent.clone(),
            egress: run.egress.clone(),
            note: None,
        }
    }
}

/// Handle of a run's shim: its directory, and a pidfd that signals exactly that process.
#[derive(Clone, Debug)]
pub struct ShimHandle {
    pub dir: RunDir,
    pub process: Arc<Watched>,
    pub deadline_us: Option<u64>,
    pub cgroup: Option<PathBuf>,
    pub workspace_path: Option<PathBuf>,
}
