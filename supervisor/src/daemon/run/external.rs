//! The workspace of an external claim: created by the rules and the code of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use kernel::{Board, BoardName, Holder, Placement, Run, RunId, Task, TaskId, View};
use tokio_util::sync::CancellationToken;
use workspace::{Job, Lease, LeaseHolder, Outcome, Prepared, Sharing, WorkspaceSpec};

use super::fault::{Fault, LaunchError};
use super::{closed, place};
use crate::daemon::host::job::{self, JobFailure};
use crate::daemon::host::uids::{self, Range};
use crate::exit::Code;
use crate::failure::Failure;
use crate::paths::Root;
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
    if let Some(path) = closed::directory(&spec) {
        place::require_answer(path).map_err(|failure| Failure {
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

/// Takes the lease of a run on its directory; refuses one in which another run works.
fn lease(
    root: &Root,
    board: &BoardName,
    (task, run): (&TaskId, RunId),
    prepared: &Prepared,
) -> Result<Lease, Failure> {
    let leases = root.leases();
    crate::paths::make_dir(&leases, 0o700)?;
    let holder = LeaseHolder::Run { board: board.to_string(), run: run.get(), task: Some(task.to_string()) };
    Lease::acquire(&leases, &prepared.path, prepared.place, Sharing::Exclusive, &holder).map_err(|e| {
        let failure = Failure::new(Code::Conflict, crate::failure::with_causes(&e));
        failure.hint("the task is back in the queue: claim it again when that run has ended")
    })
}

/// The leases of a board's external claims. An external worker has no process here that could own them, so the daemon does: as
/// long as the claim lasts, and from its start on for claims that were there before. Without a daemon nothing else is
/// started in their directories either.
#[derive(Debug, Default)]
pub(crate) struct ExternalLeases {
    /// None where nobody has looked yet; a run without a lease works in no directory of its task, or in one that could not
    /// be leased.
    owned: Mutex<Option<BTreeMap<RunId, Option<Lease>>>>,
}

impl ExternalLeases {
    fn keep(&self, run: RunId, lease: Lease) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the first look this is an offline process, or a look is to come that finds the others.
        if let Some(owned) = owned.as_mut() {
            owned.insert(run, Some(lease));
        }
    }

    fn owns(&self, run: RunId) -> bool {
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        owned.as_ref().and_then(|owned| owned.get(&run)).is_some_and(Option::is_some)
    }

    /// Gives back the leases of claims that are over, and takes those of claims that nobody has looked at. Blocking.
    pub(in crate::daemon) fn follow(
        &self,
        root: &Root,
        board: &BoardName,
        view: &View<'_>,
    ) -> Result<(), kernel::Error> {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        if owned.as_ref().is_some_and(BTreeMap::is_empty) {
            return Ok(());
        }
        let open = view.open_runs()?.into_iter().filter(|run| run.holder != Holder::Supervisor);
        if let Some(owned) = owned.as_mut() {
            let open: BTreeSet<RunId> = open.map(|run| run.id).collect();
            owned.retain(|run, _| open.contains(run));
            return Ok(());
        }
        let leases = open.map(|run| Ok((run.id, taken_over(root, board, view, &run)?)));
        *owned = Some(leases.collect::<Result<_, kernel::Error>>()?);
        Ok(())
    }
}

/// The lease of a claim that an earlier process, or one without a daemon, has made.
fn taken_over(
    root: &Root,
    board: &BoardName,
    view: &View<'_>,
    run: &Run,
) -> Result<Option<Lease>, kernel::Error> {
    let spec = view.task(&run.task_id)?.and_then(|task| task.workspace.parse::<WorkspaceSpec>().ok());
    let Some(WorkspaceSpec::Directory(path)) = spec else { return Ok(None) };
    let prepared = match job::work(None, Vec::new(), Vec::new(), Job::PrepareDirectory { path }) {
        Ok(Outcome::Prepared(prepared)) => Ok(prepared),
        Ok(_) => Err(JobFailure::another_answer().message),
        Err(failure) => Err(failure.message),
    };
    let leased = prepared.and_then(|prepared| {
        lease(root, board, (&run.task_id, run.id), &prepared).map_err(|failure| failure.message)
    });
    Ok(leased
        .inspect_err(|error| tracing::warn!(task = %run.task_id, %error, "directory_of_claim_not_leased"))
        .ok())
}

fn refused(error: &LaunchError) -> Failure {
    let code = match error.fault {
        Fault::Host | Fault::Moment | Fault::Abandoned => Code::TryAgain,
        Fault::Task | Fault::Environment(_) => Code::Conflict,
    };
    Failure::new(code, format!("failed to {}: {}", error.stage, error.error))
        .hint("the task is back in the queue: fix that, then claim it again")
}
