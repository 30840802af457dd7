//! Input of a run's start: the host, and the data read by the claim.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::{Purpose, Run, Task, WorkspaceSpec};
use policies::{BoardAccess, Identity, PidNamespace, Policy};
use shim::rundir::RunDir;
use tokio_util::sync::CancellationToken;

use super::environment::Environment;
use super::fault::LaunchError;
use super::heard_runs::HeardRuns;
use super::session::Resume;
use super::stage::Stage;
use api::RunListeners;
use base::paths::Root;
use host::cgroup::Cgroups;
use host::spare::Spares;
use net::proxy::RunProxies;
use setup::config::Config;
use setup::lanes::{Lane, Skill};
use setup::roster::{Home, PoolClaim, RunLimits};

/// The host and the daemon, as far as a start needs them.
#[derive(Debug)]
pub(crate) struct Host {
    pub root: Root,
    pub support: policies::Support,
    pub cgroups: Result<Cgroups, String>,
    /// Pid namespace that contains the processes of a run without a cgroup.
    pub pid_namespace: Result<PidNamespace, String>,
    pub(crate) spares: Spares,
    /// Launched runs, for the notifications of their shims.
    pub(crate) heard_runs: HeardRuns,
    pub port: Option<u16>,
    pub run_listeners: Arc<RunListeners>,
    pub proxies: RunProxies,
    pub hostname: String,
    pub boot_id: String,
    /// Identity of the root's directory.
    pub root_id: String,
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
    pub(crate) fn leave(&self) {
        self.proxies.keep_figures();
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
        let opened = self.run_listeners.open(order.board_id, order.run.id, identity);
        let refused = |e| LaunchError::refusal(Stage::MakeSocket, Environment::Root, e);
        opened.map(BoardAccess::Socket).map_err(refused)
    }

    /// Returns the cgroup with the name of a run; none on a host without cgroups.
    pub(crate) fn named_group(&self, board: &kernel::BoardName, run: kernel::RunId) -> Option<PathBuf> {
        self.cgroups.as_ref().ok().map(|cgroups| cgroups.run(board, run))
    }

    /// Returns the cgroups that may belong to a run: the cgroup named after the run, and the cgroup in its spec. The
    /// latter has another name if the shim had waited for a run.
    pub(crate) fn groups(&self, board: &kernel::BoardName, run: kernel::RunId) -> BTreeSet<PathBuf> {
        let run_group = self.named_group(board, run);
        let dir = RunDir::open(&self.root.run_dir(board, run));
        let recorded = dir.ok().and_then(|dir| dir.spec().ok()).and_then(|spec| spec.cgroup);
        run_group.into_iter().chain(recorded).collect()
    }
}

/// Data of a claimed run, for its start.
pub(crate) struct Order {
    pub board: kernel::BoardName,
    pub board_id: kernel::BoardId,
    pub task: Task,
    pub run: Run,
    pub token: String,
    pub context: String,
    /// Session that it continues, if the session still exists.
    pub resume: Option<Resume>,
    pub files: Vec<kernel::Attachment>,
    pub lane: Lane,
    pub lane_name: kernel::Profile,
    /// Limited resources that it takes.
    pub resources: PoolClaim,
    pub home: Home,
    /// Text that the worker reads before its task.
    pub role_prompt: Option<String>,
    pub skills: Vec<Skill>,
    pub policy: Policy,
    pub own_uid: Option<u32>,
    pub deadline: std::time::Duration,
    pub limits: RunLimits,
    pub config: Arc<Config>,
    /// Workspaces of the tasks of all boards.
    pub workplaces: Vec<WorkspaceSpec>,
    /// Cancels the preparation of a start that is given up.
    pub cancel: CancellationToken,
}
