//! Run context of a run: its directories, the paths closed to it, and the directories of its programs.

use std::path::{Path, PathBuf};

use kernel::WorkspaceSpec;
use policies::{Arrange, Arrangement, BoardAccess, Identity, RunContext, SecretStores};
use workspace::{Prepared, Shown};

use super::closed_paths;
use super::order::{Host, Order};
use super::private::Private;
use base::failure::Failure;
use host::home::{program_home, toolchain_home};

/// Returns the places that stay closed to a run. Of the supervisor's own places, it may use its home, its sessions, its
/// files, the programs, its socket, and a workspace made there.
pub(super) fn closed_paths_of(
    host: &Host,
    order: &Order,
    spec: &WorkspaceSpec,
    prepared: &Prepared,
    mut own: Vec<PathBuf>,
    board: &BoardAccess,
) -> Result<policies::ClosedPaths, Failure> {
    own.push(host.root.bin());
    if let BoardAccess::Socket(socket) = board {
        own.extend(socket.parent().map(Path::to_owned));
    }
    if *spec == WorkspaceSpec::Scratch {
        own.push(prepared.path.clone());
    }
    closed_paths::of_run(&host.root, &order.config.worker, spec, own, &order.workplaces)
}

/// Parts of a run context.
pub(super) struct Parts<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) private: &'a Private,
    /// Files that the run may read.
    pub(super) read: Vec<PathBuf>,
    /// Directory of its sessions.
    pub(super) kept: Option<PathBuf>,
    pub(super) identity: Option<Identity>,
    pub(super) cgroup: Option<&'a Path>,
    pub(super) closed: policies::ClosedPaths,
    pub(super) board: BoardAccess,
    pub(super) stores: SecretStores,
}

/// Returns the directories, the user and the sockets of a run.
pub(super) fn run_context(host: &Host, order: &Order, parts: Parts<'_>) -> RunContext {
    let Parts { prepared, private, read, kept, identity, cgroup, closed, board, stores } = parts;
    RunContext {
        workspace: prepared.path.clone(),
        home: private.home.clone(),
        tmp: private.tmp.clone(),
        read,
        execute: std::iter::once(host.root.bin()).chain(install(order, identity)).collect(),
        write: kept.into_iter().collect(),
        arrangement: arrangement(prepared),
        identity,
        work_cgroup: cgroup.map(|group| group.join("work")),
        pid_namespace: cgroup.is_none().then(|| host.pid_namespace_of(&order.policy)).flatten(),
        board,
        closed,
        toolchain_home: toolchain_home(&order.policy, identity, order.task.tenant.is_some()),
        proxy: order.policy.has_proxy().then(|| host.root.keeper(&order.board, order.run.id)),
        credentials: stores.credentials,
        secrets: stores.directory,
        // Only confine knows the shim's pid, and fills it in.
        parent: 0,
    }
}

/// Returns the directories that the run's program needs.
fn install(order: &Order, identity: Option<Identity>) -> Vec<PathBuf> {
    // Looking up a home may take long if the host's users are stored elsewhere.
    let home = order.lane.is_looked_for().then(|| program_home(identity, order.task.tenant.is_some()));
    order.lane.install_under(&order.policy, home.flatten().as_deref())
}

/// Returns the worker's view of its workspace, and its grants on a host without mount namespaces.
fn arrangement(prepared: &Prepared) -> Arrangement {
    let grants = &prepared.grants;
    let step = |shown: &Shown| match shown.clone() {
        Shown::Fresh { at } => Arrange::Fresh { at },
        Shown::Show { at, source } => Arrange::Show { at, source },
        Shown::Lend { at, source } => Arrange::Lend { at, source },
        Shown::Link { at, target } => Arrange::Link { at, target },
    };
    let open = "without a mount namespace the run can destroy the objects of its repository and move the branches of other \
                worktrees";
    Arrangement {
        steps: grants.shown.iter().map(step).collect(),
        read_without_view: grants.read.clone(),
        write_without_view: grants.write.clone(),
        open_without_view: (!grants.write.is_empty()).then(|| open.to_owned()),
    }
}
