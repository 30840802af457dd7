//! Watches the shim of a run that is not a child of the daemon.

use std::sync::Arc;
use std::time::Duration;

use kernel::Run;
use shim::rundir::{LockState, RunDir, StopRequest};

use super::command_start::tell_started;
use super::context::{Context, RETRY};
use super::key::TaskKey;
use super::listen;
use super::live::{Phase, ShimHandle};
use super::messages::WatchedRun;
use super::report::Report;
use super::stopping::stop;
use super::unkillable::tell_unkillable;
use host::watch::Watched;
use service::BoardHandle;

/// First pause between two looks for a shim that holds its lock without a pid record.
const LOOK: Duration = Duration::from_millis(5);

/// Watches the shim of a run that is not a child, as long as the run's lock is held. `ending` asks the shim to end the
/// run.
pub(crate) async fn watch_to_end(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: &Run,
    ending: Option<&StopRequest>,
) {
    let path = context.host.root.run_dir(board.name(), run.id);
    let mut pause = LOOK;
    while let Ok(dir) = RunDir::open(&path)
        && matches!(dir.lock_state(), Ok(LockState::Held))
    {
        // The shim takes its lock before it writes its pid record, both within its first milliseconds.
        match find_shim(&dir, &context.host.boot_id) {
            Ok(Some(watched)) => {
                let watched = Arc::new(watched);
                let shim = handle(&dir, &watched);
                context.tell(key, Report::Launched(shim.clone())).await;
                if let Some(request) = ending {
                    stop(context, key.clone(), &shim, request);
                }
                tell_started(context, board, key, run.id, &dir).await;
                tell_unkillable(context, board, key, run, &dir).await;
                let live = WatchedRun { key, run: run.id, dir: &dir, watched: &watched, followed: None };
                let ended = listen::until_ended(context, board, live);
                if let Err(error) = ended.await {
                    tracing::error!(task = %key, %error, "watch_failed");
                }
                return;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(task = %key, %error, "watch_failed"),
        }
        if pause == RETRY {
            let why = "the run's lock is taken, and its shim cannot be watched".to_owned();
            context.tell(key, Report::Delayed(Phase::Settling, why)).await;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY);
    }
}

/// Opens the shim that holds the lock of a run directory. None if it has no pid record yet, or has just ended.
///
/// The lock was seen held, so the record names a live process, unless that has ended in between. Then the pid may have
/// been reused, so the identity is compared after opening it.
pub(super) fn find_shim(dir: &RunDir, boot_id: &str) -> std::io::Result<Option<Watched>> {
    let Some(record) = dir.pid().map_err(std::io::Error::other)? else { return Ok(None) };
    if record.boot_id != boot_id {
        return Ok(None);
    }
    let watched = match Watched::open(record.shim.pid) {
        Ok(watched) => watched,
        Err(e) if e.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => return Ok(None),
        Err(e) => return Err(e),
    };
    Ok(watched.is(&record.shim)?.then_some(watched))
}

fn handle(dir: &RunDir, watched: &Arc<Watched>) -> ShimHandle {
    let spec = dir.spec().ok();
    ShimHandle {
        dir: dir.clone(),
        process: Arc::clone(watched),
        deadline_us: spec.as_ref().and_then(|spec| spec.deadline_us),
        cgroup: spec.as_ref().and_then(|spec| spec.cgroup.clone()),
        workspace_path: spec.map(|spec| spec.cwd),
    }
}
