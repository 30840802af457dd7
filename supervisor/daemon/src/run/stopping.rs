//! Asks the shim of a run to end it.

use shim::rundir::{RunDirError, StopRequest};

use super::context::{Context, RETRY};
use super::key::TaskKey;
use super::live::ShimHandle;
use super::overdue;
use super::report::Report;

/// Asks a shim to end its run, and reports a failure to deliver the request, such as on a full disk.
pub(crate) fn stop(context: &Context, key: TaskKey, shim: &ShimHandle, request: &StopRequest) {
    tracing::info!(task = %key, reason = ?request.reason, "stopping");
    let asked = match shim.dir.request_stop(request) {
        // The directory has been removed. A shim that gets TERM and finds no request ends its run all the same.
        Err(RunDirError::Write { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
        asked => asked.map_err(|e| base::failure::with_causes(&e)),
    };
    let asked = asked.and_then(|()| shim.process.ask_to_end().map_err(|e| e.to_string()));
    let (asking, handle, request) = (key.clone(), shim.clone(), request.clone());
    // Not tracked: the daemon may end first, and the next one asks again.
    tokio::spawn(async move { overdue::as_asked(&asking, &handle.dir, &handle.process, &request).await });
    let Err(error) = asked else { return };
    tracing::warn!(task = %key, %error, "stop_not_delivered");
    let reports = context.reports.clone();
    // Not tracked: the daemon may end first.
    tokio::spawn(async move {
        tokio::time::sleep(RETRY).await;
        reports.tell(&key, Report::StopFailed).await;
    });
}
