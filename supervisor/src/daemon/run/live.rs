//! What is going on now: the live runs, as the owner loop knows them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::{BoardName, Egress, Profile, Purpose, Run, RunId, Spent, Task, TaskId, Tenant, Timestamp};
use serde::{Deserialize, Serialize};
use shim::rundir::RunDir;

use crate::host::watch::Watched;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Claimed; its workspace and its shim are being made.
    Starting,
    /// Its command runs.
    Running,
    /// It was asked to end, has given its verdict, or has ended and is being recorded on its board.
    Ending,
    /// It has ended, and something keeps that from its board.
    Settling,
    /// SIGKILL does not end its processes.
    Unkillable,
    /// Its shim is gone, and nobody can prove that its processes are.
    Unknown,
}

impl Phase {
    /// Whether nothing that a daemon does ends the run: it keeps its claim and its place and takes nobody's slot, and a daemon
    /// that stops leaves it to the next one.
    pub(crate) fn is_out_of_reach(self) -> bool {
        match self {
            Phase::Unkillable | Phase::Unknown => true,
            Phase::Starting | Phase::Running | Phase::Ending | Phase::Settling => false,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LiveRun {
    pub(crate) board: BoardName,
    pub(crate) task: TaskId,
    /// The task's title.
    pub(crate) title: String,
    pub(crate) run: RunId,
    #[serde(default)]
    pub(crate) purpose: Purpose,
    /// How many questions deep its task is, where it is that of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) consult: Option<u32>,
    /// Who works.
    pub(crate) profile: Option<Profile>,
    pub(crate) tenant: Option<Tenant>,
    /// How far it has come.
    pub(crate) phase: Phase,
    /// The worker's pid, once it runs.
    pub(crate) pid: Option<i32>,
    /// When the task was claimed.
    pub(crate) started_at: Timestamp,
    /// When it will be ended, in microseconds of `CLOCK_BOOTTIME`.
    pub(crate) deadline_us: Option<u64>,
    /// The last sign of progress that the worker gave.
    pub(crate) last_heartbeat_at: Option<Timestamp>,
    /// The workspace as the task names it.
    pub(crate) workspace: String,
    /// Where it works.
    pub(crate) workspace_path: Option<PathBuf>,
    /// The directory of its cgroup.
    pub(crate) cgroup: Option<PathBuf>,
    /// What its sandbox enforces, in a line.
    pub(crate) sandbox: Option<String>,
    /// Whether a layer of its sandbox is partial or absent.
    #[serde(default)]
    pub(crate) sandbox_lacks: bool,
    /// Which those are, and how far each is enforced.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) lacks: BTreeSet<String>,
    /// What its agent says that it has used so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spent: Option<Spent>,
    /// What went through its proxy so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) egress: Option<Egress>,
    /// What holds it up, where something does.
    pub(crate) note: Option<String>,
}

impl LiveRun {
    /// A run as its board knows it, with what is known of its task.
    pub(crate) fn of(board: &BoardName, run: &Run, task: Option<&Task>) -> Self {
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

/// The way to a run's shim: its directory, and a handle that signals exactly that process.
#[derive(Clone, Debug)]
pub(crate) struct ShimHandle {
    pub(in crate::daemon) dir: RunDir,
    pub(in crate::daemon) process: Arc<Watched>,
    pub(in crate::daemon) deadline_us: Option<u64>,
    pub(in crate::daemon) cgroup: Option<PathBuf>,
    pub(in crate::daemon) workspace_path: Option<PathBuf>,
}
