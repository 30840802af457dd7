//! The life of one run, from the claim to the end by proof, as one tracked task.

use std::sync::Arc;
use std::time::Duration;

use kernel::Run;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::attempt::{Attempt, Terms};
use super::claim::claim;
use super::conclude::{conclude, fail_to_start};
use super::fault::LaunchError;
use super::key::TaskKey;
use super::launch::{self, Host, Launch};
use super::live::{LiveRun, Phase, ShimHandle};
use super::report::{Report, Reports};
use super::settle::Shim;
use super::stage::Stage;
use super::starts::Starts;
use crate::config::Tuning;
use crate::exit::Code;
use crate::failpoint;
use crate::failure::Failure;
use crate::host::watch::Watched;
use crate::roster::Roster;
use crate::rundir::{LockState, ProcessStat, RunDir, RunDirError, StopRequest};
use crate::service::{BoardHandle, Service};

/// How long a settled fact waits for a board that cannot be written, between tries.
pub(in crate::daemon) const RETRY: Duration = Duration::from_millis(500);
/// The first pause between two looks for a shim that has its lock and has not said who it is.
const LOOK: Duration = Duration::from_millis(5);

/// What every run shares.
#[derive(Debug)]
pub(in crate::daemon) struct Context {
    pub(in crate::daemon) service: Arc<Service>,
    pub(in crate::daemon) host: Host,
    pub(in crate::daemon) reports: Reports,
    pub(in crate::daemon) tasks: TaskTracker,
    pub(in crate::daemon) starts: Starts,
    /// What the command line says instead of the configuration, however often that is read.
    pub(in crate::daemon) tuning: Tuning,
}

impl Context {
    /// Has a shim wait for the next run.
    pub(in crate::daemon) fn refill(self: &Arc<Self>) {
        let context = Arc::clone(self);
        self.tasks.spawn_blocking(move || context.host.spares.refill());
    }

    /// Reports to the owner loop, when there is room.
    pub(in crate::daemon) async fn tell(&self, key: &TaskKey, report: Report) {
        self.reports.tell(key, report).await;
    }
}

/// Runs one task. `cancel` gives its start up.
pub(in crate::daemon) async fn run_task(
    context: Arc<Context>,
    board: Arc<BoardHandle>,
    attempt: Attempt,
    roster: Arc<Roster>,
    cancel: CancellationToken,
) {
    let Attempt { candidate, terms } = attempt;
    let key = TaskKey { board: board.name().clone(), task: candidate.task.clone() };
    let order = match claim(&context, &board, candidate, &roster, cancel).await {
        Ok(order) => order,
        Err(failure) => {
            if failure.code != Code::Conflict {
                tracing::warn!(task = %key, error = %failure, "claim_failed");
            }
            context.starts.end(&key);
            context.tell(&key, Report::ClaimFailed(failure)).await;
            return;
        }
    };
    failpoint::pass("after-claim");
    let live = LiveRun::of(board.name(), &order.run, Some(&order.task));
    context.tell(&key, Report::Claimed(Box::new(live))).await;
    let run = order.run.clone();
    let shared = Arc::clone(&context);
    let prepared = tokio::task::spawn_blocking(move || {
        let mut launch = launch::prepare(&shared.host, &order)?;
        let child = launch::spawn(&mut launch)?;
        Ok((launch, child))
    });
    let launched = match prepared.await {
        Ok(launched) => launched,
        // The same task would panic again, and another one perhaps not.
        Err(panic) => Err(LaunchError::task(Stage::Prepare, panic.to_string())),
    };
    context.starts.end(&key);
    let (launch, mut child) = match launched {
        Ok(launched) => launched,
        Err(error) => {
            fail_to_start(&context, &board, &key, (&run, &terms), error).await;
            return;
        }
    };
    tracing::info!(task = %key, run = %run.id, shim = child.id(), "launched");
    record_workspace(&board, &run, &launch).await;
    let status = loop {
        // Not reaped before this loop ends, so the pid is the child's.
        match Watched::open(i32::try_from(child.id()).unwrap_or(i32::MAX)) {
            Ok(watched) => {
                let watched = Arc::new(watched);
                announce(&context, &key, &watched, &launch).await;
                if let Err(error) = watched.ended().await {
                    tracing::error!(task = %key, %error, "watch_failed");
                }
                // It has ended, so this returns at once.
                break child.wait();
            }
            Err(error) => {
                // Out of file descriptors. The shim goes on, and can be stopped when it can be watched.
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
            // Ended by itself and not well: it had no place for its records, or could not even begin.
            if let Some(code) = status.code().filter(|code| *code != 0) {
                let why = format!("the shim of {} ended with code {code}", key.task);
                context.tell(&key, Report::Shortage(why)).await;
            }
        }
        Err(error) => tracing::error!(task = %key, %error, "reap_failed"),
    }
    conclude(&context, &board, &key, (&run, &terms), shim).await;
    context.refill();
}

/// Watches a run that an earlier daemon started, to its end.
pub(in crate::daemon) async fn adopt(
    context: Arc<Context>,
    board: Arc<BoardHandle>,
    key: TaskKey,
    run: Run,
    terms: Terms,
) {
    watch_to_end(&context, &board, &key, &run).await;
    failpoint::pass("after-exit");
    conclude(&context, &board, &key, (&run, &terms), Shim::Unseen).await;
}

/// Watches the shim of a run that is not a child, as long as one holds the run's lock.
pub(in crate::daemon) async fn watch_to_end(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: &Run,
) {
    let path = context.host.root.run_dir(board.name(), run.id);
    let mut pause = LOOK;
    while let Ok(dir) = RunDir::open(&path)
        && matches!(dir.lock_state(), Ok(LockState::Held))
    {
        // The shim holds its lock before it has written who it is; both happen within its first milliseconds.
        match find_shim(&dir, &context.host.boot_id) {
            Ok(Some(watched)) => {
                let watched = Arc::new(watched);
                announce_adopted(context, key, &dir, &watched).await;
                tell_started(context, board, key, run, &dir).await;
                if let Err(error) = watched.ended().await {
                    tracing::error!(task = %key, %error, "watch_failed");
                }
                return;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(task = %key, %error, "watch_failed"),
        }
        if pause == RETRY {
            let why = "the run's lock is held, and its shim cannot be watched".to_owned();
            context.tell(key, Report::Delayed(Phase::Settling, why)).await;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY);
    }
}

/// Watches the shim that holds the lock of a run directory; none where it has not said who it is, or has just ended.
///
/// The lock was seen held, so the record is that of a living process, unless that process ended in between: then the
/// pid may be anybody's, whom the boot, the start time and the inode of the pidfd tell apart.
fn find_shim(dir: &RunDir, boot_id: &str) -> std::io::Result<Option<Watched>> {
    let Some(record) = dir.pid().map_err(std::io::Error::other)? else { return Ok(None) };
    if record.boot_id != boot_id {
        return Ok(None);
    }
    let record = record.shim;
    let watched = match Watched::open(record.pid) {
        Ok(watched) => watched,
        Err(e) if e.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => return Ok(None),
        Err(e) => return Err(e),
    };
    let same_start = ProcessStat::of(record.pid).is_ok_and(|stat| stat.start_ticks == record.start_ticks);
    let same_inode = match record.pidfs_inode {
        Some(inode) => watched.inode()? == inode,
        None => true,
    };
    Ok((same_start && same_inode).then_some(watched))
}

async fn announce_adopted(context: &Context, key: &TaskKey, dir: &RunDir, watched: &Arc<Watched>) {
    let spec = dir.spec().ok();
    let shim = ShimHandle {
        dir: dir.clone(),
        process: Arc::clone(watched),
        deadline_us: spec.as_ref().and_then(|spec| spec.deadline_us),
        cgroup: spec.as_ref().and_then(|spec| spec.cgroup.clone()),
        workspace_path: spec.map(|spec| spec.cwd),
    };
    context.tell(key, Report::Launched(shim)).await;
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

async fn record_workspace(board: &BoardHandle, run: &Run, launch: &Launch) {
    let id = run.id;
    let place = kernel::Placement {
        path: launch.prepared.path.display().to_string(),
        branch: launch.prepared.branch.as_ref().map(|branch| branch.name.clone()),
        worker_uid: launch.identity.map(|identity| identity.uid),
    };
    let recorded = submit(board, move |board| board.record_workspace(id, &place)).await;
    if let Err(error) = recorded {
        tracing::warn!(run = %id, %error, "workspace_not_recorded");
    }
}

/// Records that the command of a run has been started, and shows it.
pub(in crate::daemon) async fn tell_started(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: &Run,
    dir: &RunDir,
) {
    let Ok(Some(record)) = dir.started() else { return };
    let id = run.id;
    let pid = record.pid;
    let report = serde_json::to_value(&record.report).unwrap_or_default();
    let recorded = submit(board, move |board| board.record_spawned(id, pid, &report)).await;
    match recorded {
        Ok(()) => {
            failpoint::pass("after-started");
            context.tell(key, Report::Started(Box::new(record))).await;
        }
        Err(error) if error.code == Code::Conflict => {}
        Err(error) => tracing::warn!(task = %key, %error, "start_not_recorded"),
    }
}

/// Asks a shim to end its run, and says if that did not work: a full disk has no place for the request.
pub(in crate::daemon) fn stop(context: &Context, key: TaskKey, shim: &ShimHandle, request: &StopRequest) {
    tracing::info!(task = %key, reason = ?request.reason, "stopping");
    let asked = match shim.dir.request_stop(request) {
        // Somebody has taken the directory away. A shim that gets TERM and finds no request ends its run all the same.
        Err(RunDirError::Write { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
        asked => asked.map_err(|e| crate::failure::with_causes(&e)),
    };
    let asked = asked.and_then(|()| shim.process.signal(Signal::TERM).map_err(|e| e.to_string()));
    let Err(error) = asked else { return };
    tracing::warn!(task = %key, %error, "stop_not_delivered");
    let reports = context.reports.clone();
    // Not tracked: the daemon may end before.
    tokio::spawn(async move {
        tokio::time::sleep(RETRY).await;
        reports.tell(&key, Report::StopFailed).await;
    });
}

/// Runs a job in the writer's next transaction.
pub(in crate::daemon) async fn submit<T: Send + 'static>(
    board: &BoardHandle,
    job: impl FnOnce(&mut kernel::Board<'_>) -> Result<T, kernel::Error> + Send + 'static,
) -> Result<T, Failure> {
    let (done, reply) = tokio::sync::oneshot::channel();
    board.writer()?.submit(job, move |result| drop(done.send(result)));
    reply
        .await
        .map_err(|_| Failure::new(Code::TryAgain, "the board's writer has stopped"))?
        .map_err(Failure::from)
}
