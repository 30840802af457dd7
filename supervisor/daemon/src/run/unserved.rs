//! Ends the runs of boards that are not served, for a daemon that ends all its workers. Nothing can be recorded on
//! those boards. The run directories stay, with the records, until the board works again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::BoardName;
use shim::rundir::{LockState, RunDir, RunDirError, StopReason, StopRequest, VERSION};

use super::context::Context;
use super::key::TaskKey;
use super::overdue;
use super::shim_watch::find_shim;
use host::ended;

/// Time that a shim may take beyond the grace of its worker, including being continued and killed.
const MARGIN: Duration = Duration::from_secs(90);

/// Ends the runs of all boards that are not served. Returns the directories of runs whose end could not be proved.
pub(crate) async fn end_all(context: &Arc<Context>, reason: StopReason) -> Vec<PathBuf> {
    let grace = match reason {
        StopReason::Kill => Duration::ZERO,
        _ => context.service.config().worker.grace(),
    };
    let mut ends = tokio::task::JoinSet::new();
    for board in context.service.refusals().into_keys() {
        let Ok(entries) = std::fs::read_dir(context.host.root.runs(&board)) else { continue };
        // A name with a dot marks an interrupted removal: no shim can find its directory any more.
        let entries =
            entries.flatten().filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        for path in entries.map(|entry| entry.path()) {
            let (context, board) = (Arc::clone(context), board.clone());
            ends.spawn(async move { (end(&context, board, path.clone(), reason, grace).await, path) });
        }
    }
    let mut unended = Vec::new();
    while let Some(ended) = ends.join_next().await {
        match ended {
            Ok((Ok(()), path)) => tracing::info!(path = %path.display(), "unserved_run_ended"),
            Ok((Err(why), path)) => {
                tracing::error!(path = %path.display(), why, "unserved_run_not_ended");
                unended.push(path);
            }
            Err(panic) => tracing::error!(error = %panic, "unserved_run_not_ended"),
        }
    }
    unended
}

async fn end(
    context: &Context,
    board: BoardName,
    path: PathBuf,
    reason: StopReason,
    grace: Duration,
) -> Result<(), String> {
    let dir = match RunDir::open(&path) {
        Ok(dir) => dir,
        // Nothing named in it belongs to this root.
        Err(RunDirError::Copied { .. }) => return Ok(()),
        Err(error) => return Err(base::failure::with_causes(&error)),
    };
    if let LockState::Held = dir.lock_state().map_err(|e| base::failure::with_causes(&e))? {
        let task = dir.spec().map_err(|e| base::failure::with_causes(&e))?.task;
        let key = TaskKey { board, task: task.parse().map_err(|e: kernel::ParseError| e.to_string())? };
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let request = StopRequest { version: VERSION, reason, quiet_ms: 0, grace_ms };
        dir.request_stop(&request).map_err(|e| base::failure::with_causes(&e))?;
        let shim = find_shim(&dir, &context.host.boot_id).map_err(|e| e.to_string())?;
        if let Some(shim) = shim {
            shim.ask_to_end().map_err(|e| e.to_string())?;
            let ended = overdue::as_asked(&key, &dir, &shim, &request);
            let within = grace + MARGIN;
            tokio::time::timeout(within, ended)
                .await
                .map_err(|_| format!("its shim has not ended within {within:?}"))?;
        }
    }
    tokio::task::spawn_blocking(move || rest_of(&dir)).await.map_err(|panic| panic.to_string())?
}

/// Ends the remains of a killed shim, as far as its records allow. Blocks.
fn rest_of(dir: &RunDir) -> Result<(), String> {
    let failed = |e: &dyn std::error::Error| base::failure::with_causes(e);
    let LockState::Free(_guard) = dir.lock_state().map_err(|e| failed(&e))? else {
        return Err("its shim cannot be found".to_owned());
    };
    if dir.exit().map_err(|e| failed(&e))?.is_some() {
        return Ok(());
    }
    let Some(pid) = dir.pid().map_err(|e| failed(&e))? else { return Ok(()) };
    let boot = shim::rundir::boot_id().map_err(|e| format!("the boot id cannot be read: {e}"))?;
    if pid.boot_id != boot {
        return Ok(());
    }
    ended::end(dir, &pid).map_err(|e| e.in_words())?;
    let spec = dir.spec().map_err(|e| failed(&e))?;
    if spec.cgroup.is_none() && pid.init.is_none() {
        return Err("its shim was killed, and nothing proves that its processes are gone".to_owned());
    }
    Ok(())
}
