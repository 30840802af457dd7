//! Input of a run's start: the host, and the data read by the claim.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::{Purpose, Run, Task};
use policies::{BoardAccess, Identity, PidNamespace, Policy};
use shim::rundir::RunDir;
use tokio_util::sync::CancellationToken;
use workspace::WorkspaceSpec;

use super::environment::Environment;
use super::fault::LaunchError;
use super::session::Resume;
use super::stage::Stage;
use crate::api::RunDoors;
use crate::config::Config;
use crate::host::cgroup::Cgroups;
use crate::host::spare::Spares;
use crate::lanes::{Lane, Skill};
use crate::paths::Root;
use crate::proxy::WaysOut;
use crate::roster::{Home, RunLimits, Share};

/// The host and the daemon, as far as a start needs them.
#[derive(Debug)]
pub(in crate::daemon) struct Host {
    pub(in crate::daemon) root: Root,
    pub(in crate::daemon) support: policies::Support,
    pub(in crate::daemon) cgroups: Result<Cgroups, String>,
    /// Pid namespace that contains the processes of a run without a cgroup.
    pub(in crate::daemon) pid_namespace: Result<PidNamespace, String>,
    pub(in crate::daemon) spares: Spares,
    pub(in crate::daemon) port: Option<u16>,
    pub(in crate::daemon) doors: Arc<RunDoors>,
    pub(in crate::daemon) ways: WaysOut,
    pub(in crate::daemon) hostname: String,
    pub(in crate::daemon) boot_id: String,
    /// Identity of the root's directory.
    pub(in crate::daemon) root_id: String,
}

impl Host {
    /// Returns the pid namespace of a run without a cgroup. If it requires a user namespace, it is used only with a
    /// policy that needs a user namespace anyway: inside one, the host's files have unknown owners, which some programs
    /// refuse.
    pub(super) fn pid_namespace_of(&self, policy: &Policy) -> Option<PidNamespace> {
        self.pid_namespace.as_ref().ok().copied().filter(|namespace| match namespace {
            PidNamespace::Privileged => true,
            PidNamespace::UserNamespace => policy.has_view(&self.support),
        })
    }

    /// Releases the daemon's resources on the host, and leaves live runs their own.
    pub(in crate::daemon) fn leave(&self) {
        self.ways.keep_figures();
        self.spares.close();
        if let Ok(cgroups) = &self.cgroups {
            cgroups.remove();
        }
    }

    /// Opens a run's access to the board.
    pub(super) fn way(&self, order: &Order, identity: Option<Identity>) -> Result<BoardAccess, LaunchError> {
        // A check reports by its exit code only.
        if order.run.purpose == Purpose::Check {
            return Ok(BoardAccess::None);
        }
        if let Some(port) = self.port {
            return Ok(BoardAccess::Port(port));
        }
        let opened = self.doors.open(order.board_id, order.run.id, identity);
        let refused = |e| LaunchError::refusal(Stage::MakeSocket, Environment::Root, e);
        opened.map(BoardAccess::Socket).map_err(refused)
    }

    /// Returns the cgroups that may belong to a run: the one of its name, and the one in its spec. The latter has
    /// another name if the shim had waited for the run.
    pub(in crate::daemon) fn groups(
        &self,
        board: &kernel::BoardName,
        run: kernel::RunId,
    ) -> BTreeSet<PathBuf> {
        let own = self.cgroups.as_ref().ok().map(|cgroups| cgroups.run(board, run));
        let dir = RunDir::open(&self.root.run_dir(board, run));
        let told = dir.ok().and_then(|dir| dir.spec().ok()).and_then(|spec| spec.cgroup);
        own.into_iter().chain(told).collect()
    }
}

/// All that is known of a run once the board has it.
pub(in crate::daemon) struct Order {
    pub(in crate::daemon) board: kernel::BoardName,
    pub(in crate::daemon) board_id: kernel::BoardId,
    pub(in crate::daemon) task: Task,
    pub(in crate::daemon) run: Run,
    pub(in crate::daemon) token: String,
    pub(in crate::daemon) context: String,
    /// Session that it continues, if the session still exists.
    pub(in crate::daemon) resume: Option<Resume>,
    pub(in crate::daemon) files: Vec<kernel::Attachment>,
    pub(in crate::daemon) lane: Lane,
    pub(in crate::daemon) lane_name: kernel::Profile,
    /// Limited resources that it takes.
    pub(in crate::daemon) share: Share,
    pub(in crate::daemon) home: Home,
    /// Text that the worker reads before its task.
    pub(in crate::daemon) role_prompt: Option<String>,
    pub(in crate::daemon) skills: Vec<Skill>,
    pub(in crate::daemon) policy: Policy,
    pub(in crate::daemon) own_uid: Option<u32>,
    pub(in crate::daemon) deadline: std::time::Duration,
    pub(in crate::daemon) limits: RunLimits,
    pub(in crate::daemon) config: Arc<Config>,
    /// Workspaces of the tasks of all boards.
    pub(in crate::daemon) workplaces: Vec<WorkspaceSpec>,
    /// Cancels the preparation of a start that is given up.
    pub(in crate::daemon) cancel: CancellationToken,
}
