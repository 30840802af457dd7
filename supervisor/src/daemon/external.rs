//! The workspace of an external claim: created by the rules and the code of a run.

use kernel::{Board, Placement, Task};
use tokio_util::sync::CancellationToken;
use workspace::{Lease, LeaseHolder, Prepared, Sharing, WorkspaceSpec};

use super::fault::{Fault, LaunchError};
use super::place;
use super::uids::{self, Range};
use crate::exit::Code;
use crate::failure::Failure;
use crate::service::{BoardHandle, Service};

/// The users that tasks of a board may have; none where all have the daemon's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerUids(Option<Range>);

impl WorkerUids {
    /// Those of a board. Blocking.
    pub(crate) fn of(service: &Service, board: &BoardHandle) -> Result<Self, Failure> {
        let config = service.config();
        let range = || service.worker_uids().range(board.id(), &config.worker);
        nix::unistd::geteuid().is_root().then(range).transpose().map(WorkerUids)
    }

    /// Gives a task a user of its own, where it is to have one.
    pub(crate) fn give(self, board: &mut Board<'_>, task: &Task) -> Result<(), kernel::Error> {
        uids::own_uid(self.0, board, (&task.id, &task.workspace)).map(drop)
    }
}

/// Creates the workspace of an external claim, or takes the existing one, unless a run works in it.
/// Blocking: it may wait for git.
pub(crate) fn provide(service: &Service, board: &BoardHandle, task: &Task) -> Result<Placement, Failure> {
    let root = service.root();
    let spec: WorkspaceSpec = task
        .workspace
        .parse()
        .map_err(|e: workspace::SpecError| Failure { hint: e.hint(), ..Failure::usage(e.to_string()) })?;
    super::closed::check(root, &service.config().worker, &spec)?;
    let identity = place::identity(&spec, task, task.worker_uid).map_err(|e| refused(&e))?;
    let workspaces = root.workspaces(board.name());
    let at = (board.name(), workspaces.as_path());
    let prepared =
        place::workspace(&spec, task, at, identity, &CancellationToken::new()).map_err(|e| refused(&e))?;
    if matches!(spec, WorkspaceSpec::Directory(_)) {
        require_free(service, board, task, &prepared)?;
    }
    Ok(Placement {
        path: prepared.path.display().to_string(),
        branch: prepared.branch.map(|branch| branch.name),
        worker_uid: identity.map(|identity| identity.uid),
    })
}

/// Refuses a directory in which a run works. An external claim has no process that could own the lease for longer.
fn require_free(
    service: &Service,
    board: &BoardHandle,
    task: &Task,
    prepared: &Prepared,
) -> Result<(), Failure> {
    let leases = service.root().leases();
    crate::paths::make_dir(&leases, 0o700)?;
    let holder = LeaseHolder::Run {
        board: board.name().to_string(),
        run: task.current_run_id.map_or(0, kernel::RunId::get),
        task: Some(task.id.to_string()),
    };
    match Lease::acquire(&leases, &prepared.path, prepared.place, Sharing::Exclusive, &holder) {
        Ok(_) => Ok(()),
        Err(e) => {
            let failure = Failure::new(Code::Conflict, crate::lanes::with_causes(&e));
            Err(failure.hint("the task is back in the queue: claim it again when that run has ended"))
        }
    }
}

fn refused(error: &LaunchError) -> Failure {
    let code = match error.fault {
        Fault::Host | Fault::Moment | Fault::Abandoned => Code::TryAgain,
        Fault::Task | Fault::Environment(_) => Code::Conflict,
    };
    Failure::new(code, format!("failed to {}: {}", error.step, error.error))
        .hint("the task is back in the queue: fix that, then claim it again")
}
