//! The end of a run, asked of its shim.

use shim::rundir::{RunDirError, StopRequest};

use super::context::{Context, RETRY};
use super::key::TaskKey;
use super::live::ShimHandle;
use super::overdue;
use super::report::Report;

/// Asks a shim to end its run, and says if that did not work: a full disk has no place for the request.
pub(in crate::daemon) fn stop(context: &Context, key: TaskKey, shim: &ShimHandle, request: &StopRequest) {
    tracing::info!(task = %key, reason = ?request.reason, "stopping");
    let asked = match shim.dir.request_stop(request) {
        // Somebody has taken the directory away. A shim that gets TERM and finds no request ends its run all the same.
        Err(RunDirError::Write { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
        asked => asked.map_err(|e| crate::failure::with_causes(&e)),
    };
    let asked = asked.and_then(|()| shim.process.ask_to_end().map_err(|e| e.to_string()));
    let (asking, handle, request) = (key.clone(), shim.clone(), request.clone());
    // Not tracked: the daemon may end before, and the next one asks again.
    tokio::spawn(async move { overdue::as_asked(&asking, &handle.dir, &handle.process, &request).await });
    let Err(error) = asked else { return };
    tracing::warn!(task = %key, %error, "stop_not_delivered");
    let reports = context.reports.clone();
    // Not tracked: the daemon may end before.
    tokio::spawn(async move {
        tokio::time::sleep(RETRY).await;
        reports.tell(&key, Report::StopFailed).await;
    });
}
