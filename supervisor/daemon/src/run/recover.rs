//! Recovers the runs of an earlier daemon: adopts, finishes or reclaims them before any new claim.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{BoardName, Holder, Pool, Purpose, Run, RunId, Task};
use rustix::process::Signal;
use shim::rundir::{LockState, RunDir, RunDirError, StopReason, StopRequest, VERSION};

use super::attempt::{Charge, Terms};
use super::context::Context;
use super::environment::{Needs, RosterAndConfig};
use super::key::TaskKey;
use super::live::LiveRun;
use super::run_state::RunState;
use super::run_task::adopt;
use super::{remaining_processes, survivors};
use base::failure::Failure;
use host::{ended, remove, watch};
use net::proxy::ProxiedRun;
use service::BoardHandle;
use setup::roster::PoolClaim;

/// A run of an earlier daemon that this one handles until its end.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub run: Run,
    /// Its display.
    pub live: LiveRun,
    /// Environments that it shares with others; none if its profile is not known.
    pub needs: Option<Needs>,
    /// Limited resources that it takes.
    pub resources: PoolClaim,
}

/// Classifies every open run of a board, and returns them. Starts a task for each that follows it to its end; waits for
/// nothing.
pub(crate) fn recover(context: &Arc<Context>, board: &Arc<BoardHandle>) -> Result<Vec<Recovered>, Failure> {
    let runs = board.readers().with(|view| view.open_runs())?;
    let runs: Vec<Run> = runs.into_iter().filter(|run| run.holder == Holder::Supervisor).collect();
    let mut recovered = Vec::new();
    for run in &runs {
        let key = TaskKey { board: board.name().clone(), task: run.task_id.clone() };
        let task = board.readers().with(|view| view.task(&run.task_id))?;
        let live = LiveRun::from_run(board.name(), run, task.as_ref());
        let known = RosterAndConfig { roster: &context.service.roster(), config: &context.service.config() };
        let needs = run
            .profile
            .as_ref()
            .map(|profile| Needs::for_task(&key, profile, run.policy.as_deref(), &live.workspace, known));
        let named = task.as_ref().map(|task| task.pools.clone()).unwrap_or_default();
        let resources = resources_of(context, board.name(), run, &named, known);
        let terms = Terms { needs: needs.clone(), charge: Charge::Environment };
        tracing::info!(task = %key, run = %run.id, "recovering");
        let ending = take_over(context, board.name(), run);
        reopen_proxy(context, board, run, task.as_ref());
        if context.host.port.is_none()
            && run.purpose != Purpose::Check
            && let Err(error) = context.host.run_listeners.reopen(board.id(), run.id)
        {
            // Its worker cannot reach the board until the next daemon. The worker goes on, and its end is noticed.
            tracing::error!(task = %key, run = %run.id, %error, "door_not_made");
        }
        recovered.push(Recovered { run: run.clone(), live, needs, resources });
        context.tasks.spawn(adopt(Arc::clone(context), Arc::clone(board), key, run.clone(), terms, ending));
    }
    sweep(context, board, &runs);
    sweep_homes(context, board, &runs);
    Ok(recovered)
}

/// Returns the resources that a run took at its start; without a readable state, the resources that it would take now.
fn resources_of(
    context: &Context,
    board: &BoardName,
    run: &Run,
    named: &BTreeSet<Pool>,
    RosterAndConfig { roster, config }: RosterAndConfig<'_>,
) -> PoolClaim {
    let run_state = RunState::read(&context.host.root.run_dir(board, run.id)).ok().flatten();
    let now = || run.profile.as_ref().map(|profile| roster.pool_claim(profile, config));
    run_state.map_or_else(|| now().unwrap_or_default().with(named), |run_state| run_state.pool_claim)
}

/// Restores the limits of a live run. If the policy's limits cannot be enforced, returns a request to end the run,
/// because a new start would be refused now, too. Its task keeps its attempts.
fn take_over(context: &Context, board: &BoardName, run: &Run) -> Option<StopRequest> {
    let cgroups = context.host.cgroups.as_ref().ok()?;
    let spec = RunDir::open(&context.host.root.run_dir(board, run.id)).ok()?.spec().ok()?;
    let group = spec.cgroup.filter(|group| group.join("work").exists())?;
    let why = cgroups.take_over(&group, &spec.policy).err()?;
    tracing::error!(run = %run.id, %why, "limits_not_held_again");
    Some(StopRequest { version: VERSION, reason: StopReason::Preempted, quiet_ms: 0, grace_ms: 0 })
}

/// Serves the proxy of a live run, whose shim has kept the listening socket.
fn reopen_proxy(context: &Context, board: &Arc<BoardHandle>, run: &Run, task: Option<&Task>) {
    let Ok(dir) = RunDir::open(&context.host.root.run_dir(board.name(), run.id)) else { return };
    let Ok(spec) = dir.spec() else { return };
    let Some(keeper) = spec.run_context.proxy else { return };
    let served = ProxiedRun {
        run: run.id,
        tenant: task.and_then(|task| task.tenant.clone()),
        policy: &spec.policy,
        lane: RunState::read(dir.path()).ok().flatten().and_then(|run_state| run_state.lane),
        keeper,
        dir: dir.path(),
        stores: context.host.root.secret_stores(),
        ca: context.service.config().proxy.ca.clone(),
    };
    if let Err(error) = context.host.proxies.open(board, served) {
        tracing::error!(run = %run.id, %error, "proxy_not_served");
    }
}

/// Asks the shim of a run directory to end the run.
fn ask_to_end(dir: &RunDir, request: &StopRequest) -> Result<(), String> {
    dir.request_stop(request).map_err(|e| base::failure::with_causes(&e))?;
    if let Ok(Some(record)) = dir.pid()
        && let Some(shim) = watch::find(&record.shim).map_err(|e| e.to_string())?
    {
        // A stopped shim handles TERM only after CONT.
        for signal in [Signal::TERM, Signal::CONT] {
            watch::signal(&shim, signal).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Ends and removes run directories whose runs the board does not list as open. They remain if a daemon died between
/// the commit and the removal, or if the board was restored to an earlier state.
fn sweep(context: &Arc<Context>, board: &BoardHandle, open: &[Run]) {
    let Ok(entries) = std::fs::read_dir(context.host.root.runs(board.name())) else { return };
    for entry in entries.flatten().filter(|entry| !is_open(entry, open)) {
        // A name with a dot marks an interrupted removal: no shim can find its directory any more.
        let removed = if entry.file_name().as_encoded_bytes().starts_with(b".") {
            std::fs::remove_dir_all(entry.path()).map_err(|e| e.to_string())
        } else {
            remove_dead(&entry.path())
        };
        if let Err(error) = removed {
            tracing::warn!(path = %entry.path().display(), %error, "run_directory_not_removed");
        }
    }
}

/// Removes private places of ended runs, left by a failed or interrupted removal.
fn sweep_homes(context: &Arc<Context>, board: &BoardHandle, open: &[Run]) {
    let homes = context.host.root.run_home(board.name(), RunId(0));
    let Some(Ok(entries)) = homes.parent().map(std::fs::read_dir) else { return };
    for entry in entries.flatten().filter(|entry| !is_open(entry, open)) {
        // A live run that the board does not list still has its directory; the sweep of run directories ends it.
        let run_dir = context.host.root.runs(board.name()).join(entry.file_name());
        if run_dir.exists() {
            continue;
        }
        if let Err(error) = remove::remove_forgotten(&entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "home_not_removed");
        }
    }
}

/// Returns the cgroups of an open run, even if the directory that names them is gone.
pub(crate) fn groups_of(context: &Context, board: &BoardName, run: &Run) -> BTreeSet<PathBuf> {
    let mut groups = context.host.groups(board, run.id);
    if !context.host.root.run_dir(board, run.id).exists() {
        let mark = remaining_processes::mark_of(run, None, &context.host.root_id);
        let found = mark.and_then(|mark| mark.find().map_err(|e| e.to_string()));
        match found {
            Ok(found) => groups.extend(survivors::groups(&found)),
            Err(error) => tracing::warn!(run = %run.id, %error, "processes_not_listed"),
        }
    }
    groups
}

fn is_open(entry: &std::fs::DirEntry, open: &[Run]) -> bool {
    let number = entry.file_name().to_str().and_then(|name| name.parse::<i64>().ok());
    number.is_some_and(|number| open.iter().any(|run| run.id.get() == number))
}

fn remove_dead(path: &Path) -> Result<(), String> {
    let dir = match RunDir::open(path) {
        Ok(dir) => dir,
        // Nothing named in it belongs to this root.
        Err(RunDirError::Copied { .. }) => return std::fs::remove_dir_all(path).map_err(|e| e.to_string()),
        Err(error) => return Err(base::failure::with_causes(&error)),
    };
    match dir.lock_state().map_err(|e| base::failure::with_causes(&e))? {
        LockState::Held => {
            let request =
                StopRequest { version: VERSION, reason: StopReason::Kill, quiet_ms: 0, grace_ms: 0 };
            // The next start removes the directory once the run has ended.
            ask_to_end(&dir, &request)
        }
        LockState::Free(guard) => ended::remove(&dir, guard),
    }
}
