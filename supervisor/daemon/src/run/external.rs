//! Workspace of an external claim, created by the rules and the code of a run.

use kernel::{Placement, Task, WorkspaceSpec};
use tokio_util::sync::CancellationToken;

use super::fault::{Fault, LaunchError};
use super::provision::Provision;
use super::{closed_paths, workspace_setup};
use base::exit::Code;
use base::failure::Failure;
use host::job::{self, Asker};
use service::leases::lease;
use service::{BoardHandle, Service};

/// Creates the workspace of an external claim, or takes the existing one, unless a run works in it. Blocks: git may
/// take long.
pub fn provide(service: &Service, board: &BoardHandle, task: &Task) -> Result<Placement, Failure> {
    let root = service.root();
    let spec =
        task.workspace.require().map_err(|e| Failure { hint: e.hint(), ..Failure::usage(e.to_string()) })?;
    if let Some(path) = spec.path() {
        job::require_answer(path).map_err(|failure| Failure {
            hint: failure.hint,
            ..Failure::new(Code::TryAgain, failure.message)
        })?;
    }
    closed_paths::check(root, &service.config().worker, spec)?;
    let cancel = CancellationToken::new();
    let daemon_user = workspace_setup::OwnNumbers {
        uid: task.worker_uid,
        gid: &|| Provision::own_gid(service, board, &task.id),
    };
    let identity = workspace_setup::identity(spec, task, &daemon_user, &cancel).map_err(|e| refused(&e))?;
    let workspaces = root.workspaces(board.name());
    let at = workspace_setup::At { board: board.name(), workspaces: &workspaces };
    let asker = Asker { cancel: &cancel, on_checkout: &|_| {} };
    let prepared = workspace_setup::workspace(spec, task, at, identity, &asker).map_err(|e| refused(&e))?;
    if let (WorkspaceSpec::Directory(_), Some(run)) = (spec, task.current_run_id) {
        match lease(service.root(), board.name(), &task.id, run, &prepared) {
            Ok(lease) => board.external_leases().keep(run, lease),
            // The run has the lease already: the request is a repetition, or the board's leases were followed up before
            // it.
            Err(_) if board.external_leases().owns(run) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(Placement {
        path: prepared.path.display().to_string(),
        branch: prepared.branch.map(|branch| branch.name),
        worker_uid: identity.map(|identity| identity.uid),
    })
}

fn refused(error: &LaunchError) -> Failure {
    let code = match error.fault {
        Fault::Host | Fault::Moment | Fault::Abandoned => Code::TryAgain,
        Fault::Task | Fault::Definition | Fault::Environment(_) => Code::Conflict,
    };
    Failure::new(code, format!("failed to {}: {}", error.stage, error.error))
        .hint("the task is back in the queue: fix that, then claim it again")
}
