//! Leases of external claims on their working directories.
//!
//! See decision 0101.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use kernel::{BoardName, Holder, Run, RunId, TaskId, View};
use workspace::{Job, Lease, LeaseHolder, Outcome, Prepared, WorkspaceSpec};

use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use host::job::{self, JobFailure};

/// Leases of a board's external claims. An external worker has no process that could own its lease, so the daemon
/// owns it: for as long as the claim lasts, and for older claims from the daemon's start. Without a daemon no other
/// run starts in the directory either.
#[derive(Debug, Default)]
pub struct ExternalLeases {
    /// None before the first `follow`. A run without a lease works in no directory of its task, or in a directory
    /// that could not be leased.
    owned: Mutex<Option<BTreeMap<RunId, Option<Lease>>>>,
}

impl ExternalLeases {
    /// Stores the lease of a claim.
    pub fn keep(&self, run: RunId, lease: Lease) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the first `follow` there is no map: either this is an offline process, or `follow` will find the
        // claim.
        if let Some(owned) = owned.as_mut() {
            owned.insert(run, Some(lease));
        }
    }

    /// Returns true if this process has the lease of a claim.
    pub fn owns(&self, run: RunId) -> bool {
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        owned.as_ref().and_then(|owned| owned.get(&run)).is_some_and(Option::is_some)
    }

    /// Releases leases of claims that are over. The first call takes the leases of all open external claims instead.
    /// Blocking.
    pub fn follow(&self, root: &Root, board: &BoardName, view: &View<'_>) -> Result<(), kernel::Error> {
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

/// Takes the lease of a run on its directory; refuses a directory in which another run works.
pub fn lease(
    root: &Root,
    board: &BoardName,
    task: &TaskId,
    run: RunId,
    prepared: &Prepared,
) -> Result<Lease, Failure> {
    let leases = root.leases();
    base::paths::make_dir(&leases, 0o700)?;
    let holder = LeaseHolder::Run { board: board.to_string(), run: run.get(), task: Some(task.to_string()) };
    Lease::acquire(&leases, &prepared.path, prepared.place, &holder).map_err(|e| {
        let failure = Failure::new(Code::Conflict, base::failure::with_causes(&e));
        failure.hint("the task is back in the queue: claim it again when that run has ended")
    })
}

/// Takes the lease of a claim that an earlier process made, or a process without a daemon.
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
        lease(root, board, &run.task_id, run.id, &prepared).map_err(|failure| failure.message)
    });
    Ok(leased
        .inspect_err(|error| tracing::warn!(task = %run.task_id, %error, "directory_of_claim_not_leased"))
        .ok())
}
