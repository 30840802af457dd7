//! The workspace of an external claim: created by the rules and the code of a run.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::{Board, Placement, Task};
use tokio_util::sync::CancellationToken;
use workspace::{Name, WorkspaceSpec};

use super::fault::{Fault, LaunchError};
use super::{closed, place};
use crate::exit::Code;
use crate::failure::Failure;
use crate::host::job;
use crate::host::uids::{self, Range};
use crate::service::leases::lease;
use crate::service::{BoardHandle, Service};

/// What a claim gives a task of a board: a user of its own where workers have such, and its place.
#[derive(Clone, Debug)]
pub(crate) struct Provision {
    /// None where all workers have the daemon's user.
    uids: Option<Range>,
    workspaces: PathBuf,
}

impl Provision {
    /// That of a board.
    pub(crate) async fn of(service: &Arc<Service>, board: &Arc<BoardHandle>) -> Result<Self, Failure> {
        let workspaces = service.root().workspaces(board.name());
        if !nix::unistd::geteuid().is_root() {
            return Ok(Provision { uids: None, workspaces });
        }
        if let Some(range) = service.worker_uids().known(board.id(), &service.config().worker) {
            return Ok(Provision { uids: Some(range), workspaces });
        }
        let (service, board) = (Arc::clone(service), board.id());
        let range = move || service.worker_uids().range(board, &service.config().worker);
        let asked = tokio::task::spawn_blocking(range).await;
        let range =
            asked.map_err(|panic| Failure::failed(format!("the uids were not asked for: {panic}")))?;
        Ok(Provision { uids: Some(range?), workspaces })
    }

    /// Gives a claimed task its user. Returns where it is to work, as far as that is known before the workspace is made: a scratch
    /// directory has its path by its task's name, any other workspace is looked at first.
    pub(crate) fn give(
        &self,
        board: &mut Board<'_>,
        task: &Task,
    ) -> Result<Option<Placement>, kernel::Error> {
        let worker_uid = uids::own_uid(self.uids, board, (&task.id, &task.workspace))?;
        let (Ok(WorkspaceSpec::Scratch), Ok(name)) = (task.workspace.parse(), Name::new(task.id.as_str()))
        else {
            return Ok(None);
        };
        let path = workspace::scratch::path(&self.workspaces, &name).display().to_string();
        Ok(Some(Placement { path, branch: None, worker_uid }))
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
    if let Some(path) = closed::directory(&spec) {
        job::require_answer(path).map_err(|failure| Failure {
            code: Code::TryAgain,
            message: failure.message,
            hint: failure.hint,
        })?;
    }
    closed::check(root, &service.config().worker, &spec)?;
    let cancel = CancellationToken::new();
    let identity = place::identity(&spec, task, task.worker_uid, &cancel).map_err(|e| refused(&e))?;
    let workspaces = root.workspaces(board.name());
    let at = (board.name(), workspaces.as_path());
    let prepared = place::workspace(&spec, task, at, identity, &cancel).map_err(|e| refused(&e))?;
    if let (WorkspaceSpec::Directory(_), Some(run)) = (&spec, task.current_run_id) {
        match lease(service.root(), board.name(), (&task.id, run), &prepared) {
            Ok(lease) => board.external_leases().keep(run, lease),
            // Its own: the request is a repeated one, or the first look at the board came before.
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
        Fault::Task | Fault::Environment(_) => Code::Conflict,
    };
    Failure::new(code, format!("failed to {}: {}", error.stage, error.error))
        .hint("the task is back in the queue: fix that, then claim it again")
}
