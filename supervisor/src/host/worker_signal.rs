//! A signal to the worker of a run, and to no other process.

use std::path::Path;

use rustix::process::Signal;
use shim::rundir::{ProcessStat, RunDir, RunDirError};

use super::watch;

/// Why a worker got no signal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignalError {
    #[error("its worker has not started yet")]
    NotStarted,
    #[error("its worker has ended")]
    Ended,
    #[error("its run directory cannot be read")]
    RunDir(#[source] RunDirError),
    #[error("the signal was not delivered")]
    Delivery(#[source] std::io::Error),
}

/// Signals the first process of a run's worker, and returns its pid. Blocking.
///
/// # Errors
/// Fails where the worker has not started or has ended.
pub(crate) fn send(run_dir: &Path, signal: Signal) -> Result<i32, SignalError> {
    let started = RunDir::open(run_dir).and_then(|dir| dir.started()).map_err(SignalError::RunDir)?;
    let started = started.ok_or(SignalError::NotStarted)?;
    let handle = watch::open(started.pid).map_err(SignalError::Delivery)?.ok_or(SignalError::Ended)?;
    // The handle means one process for good: the worker, if that process began when the worker did.
    let is_worker = ProcessStat::of(started.pid).is_ok_and(|stat| stat.start_ticks == started.start_ticks);
    if !is_worker {
        return Err(SignalError::Ended);
    }
    watch::signal(&handle, signal).map_err(SignalError::Delivery)?;
    Ok(started.pid)
}
