//! Life of one run, from the claim to the proven end, as one tracked task.

use std::sync::Arc;

use kernel::{Clock as _, Purpose, Run, SystemClock};
use shim::rundir::StopRequest;
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, Terms};
use super::claim::claim;
use super::context::{Context, RETRY};
use super::end_run::{ShimFate, conclude, fail_to_start};
use super::fault::LaunchError;
use super::key::TaskKey;
use super::launch::{self, Launch};
use super::listen;
use super::live::{LiveRun, ShimHandle};
use super::messages::WatchedRun;
use super::proof::Shim;
use super::provision::Provision;
use super::report::Report;
use super::shim_watch::watch_to_end;
use super::stage::Stage;
use base::exit::Code;
use base::failpoint;
use base::failure::Failure;
use host::watch::Watched;
use net::proxy::ProxiedRun;
use service::BoardHandle;
use setup::roster::Roster;

/// Reports that a task was not claimed. A conflict is expected, and one trouble is logged once.
async fn fail_to_claim(context: &Context, key: &TaskKey, failure: Failure) {
    if failure.code != Code::Conflict && context.pending_starts.is_new_trouble(Some(&failure.message)) {
        tracing::warn!(task = %key, error = %failure, "claim_failed");
    }
    context.pending_starts.end(key);
    context.tell(key, Report::ClaimFailed(failure)).await;
}

/// Runs one task. `cancel` gives up its start.
pub(crate) async fn run_task(
    context: Arc<Context>,
    board: Arc<BoardHandle>,
    attempt: Attempt,
    roster: Arc<Roster>,
    cancel: CancellationToken,
) {
    let Attempt { candidate, resources, terms } = attempt;
    let key = TaskKey { board: board.name().clone(), task: candidate.task.clone() };
    let asked_at = SystemClock.now();
    let mut order = match claim(&context, &board, candidate, resources, &roster, cancel).await {
        Ok(order) => {
            context.pending_starts.is_new_trouble(None);
            order
        }
        Err(failure) => return fail_to_claim(&context, &key, failure).await,
    };
    failpoint::pass("after-claim");
    let live = LiveRun::from_run(board.name(), &order.run, Some(&order.task));
    context.tell(&key, Report::Claimed(Box::new(live))).await;
    let run = order.run.clone();
    if run.purpose != Purpose::Check {
        let sections = context.plugins.sections(&context.service, board.name(), &order.task, &run);
        // A start that is given up does not wait for the plugins.
        if let Some(sections) = order.cancel.clone().run_until_cancelled(sections).await {
            order.context.push_str(&sections);
        }
    }
    context.tracer.claimed((board.id(), run.id), asked_at);
    let (tenant, ca) = (order.task.tenant.clone(), order.config.proxy.ca.clone());
    let (shared, place) = (Arc::clone(&context), (board.id(), run.id));
    let (board_of_report, told_of) = (Arc::clone(&board), key.clone());
    let prepared = tokio::task::spawn_blocking(move || {
        let own_gid = || Provision::own_gid(&shared.service, &board_of_report, &order.task.id);
        let told = |files| shared.reports.offer(&told_of, Report::CheckingOut(files));
        let mut launch = launch::prepare(&shared.host, &order, &own_gid, &told)?;
        shared.tracer.prepared(place, SystemClock.now());
        let child = launch::spawn(shared.host.spares.program(), &mut launch)?;
        Ok((launch, child))
    });
    let launched = match prepared.await {
        Ok(launched) => launched,
        // A panic is charged to the task: the same task would panic again, and others may not.
        Err(panic) => Err(LaunchError::task(Stage::Prepare, panic.to_string())),
    };
    context.pending_starts.end(&key);
    let (launch, mut child) = match launched {
        Ok(launched) => launched,
        Err(error) => {
            fail_to_start(&context, &board, &key, &run, &terms, error).await;
            return;
        }
    };
    tracing::info!(task = %key, run = %run.id, shim = child.id(), "launched");
    let keeper = context.host.root.keeper(board.name(), run.id);
    let stores = context.host.root.secret_stores();
    let (dir, lane) = (launch.dir.path(), launch.lane.clone());
    let served = ProxiedRun { run: run.id, tenant, policy: &launch.policy, lane, keeper, dir, stores, ca };
    if let Err(error) = context.host.proxies.open(&board, served) {
        tracing::error!(task = %key, run = %run.id, %error, "proxy_not_served");
    }
    record_workspace(&board, &run, &launch).await;
    note_workspace(&board, &run, &launch).await;
    let status = loop {
        // The child is reaped only after this loop, so its pid cannot be reused.
        match Watched::open(i32::try_from(child.id()).unwrap_or(i32::MAX)) {
            Ok(watched) => {
                let watched = Arc::new(watched);
                announce(&context, &key, &watched, &launch).await;
                let followed = Some(&launch.followed);
                let live =
                    WatchedRun { key: &key, run: run.id, dir: &launch.dir, watched: &watched, followed };
                if let Err(error) = listen::until_ended(&context, &board, live).await {
                    tracing::error!(task = %key, %error, "watch_failed");
                }
                // The shim has ended, so this returns at once.
                break child.wait();
            }
            Err(error) => {
                // Out of descriptors. The shim works on, and can be stopped once it can be watched.
                tracing::warn!(task = %key, %error, "watch_failed");
                match child.try_wait() {
                    Ok(None) => tokio::time::sleep(RETRY).await,
                    Ok(Some(status)) => break Ok(status),
                    Err(error) => break Err(error),
                }
            }
        }
    };
    failpoint::pass("after-exit");
    let shim = match &status {
        Ok(status) if status.success() => Shim::Finished,
        Ok(_) | Err(_) => Shim::Gone,
    };
    match status {
        Ok(status) => {
            // The shim failed by itself: it had no space for its records, or could not begin.
            if let Some(code) = status.code().filter(|code| *code != 0) {
                let why = format!("the shim of {} ended with code {code}", key.task);
                context.tell(&key, Report::Shortage(why)).await;
            }
        }
        Err(error) => tracing::error!(task = %key, %error, "reap_failed"),
    }
    let fate = ShimFate { shim, launched: Some(&launch) };
    Box::pin(conclude(&context, &board, &key, &run, &terms, fate)).await;
    context.refill();
}

/// Follows a run of an earlier daemon to its end. `ending` asks its shim to end it.
pub(crate) async fn adopt(
    context: Arc<Context>,
    board: Arc<BoardHandle>,
    key: TaskKey,
    run: Run,
    terms: Terms,
    ending: Option<StopRequest>,
) {
    watch_to_end(&context, &board, &key, &run, ending.as_ref()).await;
    failpoint::pass("after-exit");
    Box::pin(conclude(&context, &board, &key, &run, &terms, ShimFate::UNSEEN)).await;
}

async fn announce(context: &Context, key: &TaskKey, watched: &Arc<Watched>, launch: &Launch) {
    let shim = ShimHandle {
        dir: launch.dir.clone(),
        process: Arc::clone(watched),
        deadline_us: launch.deadline_us,
        cgroup: launch.cgroup.clone(),
        workspace_path: Some(launch.prepared.path.clone()),
    };
    context.tell(key, Report::Launched(shim)).await;
}

/// Leaves a comment about the files of a workspace that are not as a checkout of git has them.
async fn note_workspace(board: &BoardHandle, run: &Run, launch: &Launch) {
    let (id, notes) = (run.id, launch.prepared.notes.clone());
    if notes.is_empty() {
        return;
    }
    if let Err(error) = board.write(move |board| board.note_workspace(id, &notes)).await {
        tracing::warn!(run = %id, %error, "workspace_not_noted");
    }
}

/// Records the path of a run's workspace, unless the claim recorded it.
async fn record_workspace(board: &BoardHandle, run: &Run, launch: &Launch) {
    let id = run.id;
    let place = kernel::Placement {
        path: launch.prepared.path.display().to_string(),
        branch: launch.prepared.branch.as_ref().map(|branch| branch.name.clone()),
        worker_uid: launch.identity.map(|identity| identity.uid),
    };
    if run.workspace_path.as_ref() == Some(&place.path) {
        return;
    }
    let recorded = board.write(move |board| board.record_workspace(id, &place)).await;
    if let Err(error) = recorded {
        tracing::warn!(run = %id, %error, "workspace_not_recorded");
    }
}
