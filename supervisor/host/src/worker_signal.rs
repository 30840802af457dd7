//! Sends a signal to the worker of a run, and to no other process.

use std::path::Path;

use rustix::process::Signal;
use shim::rundir::{Conversation, RunDir, RunDirError};

use super::watch;

/// Reason why a worker got no signal.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    #[error("its worker has not started yet")]
    NotStarted,
    #[error("its worker has ended")]
    Ended,
    #[error("{signal} would not reach its agent, whose session takes {}", names(&Conversation::SIGNALS))]
    NotPassedOn { signal: String },
    #[error("its run directory cannot be read")]
    RunDir(#[source] RunDirError),
    #[error("the signal was not delivered")]
    Delivery(#[source] std::io::Error),
}

/// Signals the first process of a run's worker. Returns its pid. Blocking.
///
/// # Errors
/// The worker has not started or has ended, or the signal would reach only the relay of a session. KILL is allowed
/// there, because the run ends with its relay.
pub fn send(run_dir: &Path, signal: Signal) -> Result<i32, SignalError> {
    let dir = RunDir::open(run_dir).map_err(SignalError::RunDir)?;
    let started = dir.started().map_err(SignalError::RunDir)?.ok_or(SignalError::NotStarted)?;
    let has_session = dir.spec().map_err(SignalError::RunDir)?.conversation.is_some();
    if has_session && signal != Signal::KILL && !Conversation::SIGNALS.contains(&signal.as_raw()) {
        return Err(SignalError::NotPassedOn { signal: names(&[signal.as_raw()]) });
    }
    let handle = watch::find(&started.worker).map_err(SignalError::Delivery)?.ok_or(SignalError::Ended)?;
    watch::signal(&handle, signal).map_err(SignalError::Delivery)?;
    Ok(started.worker.pid)
}

/// Formats signals for a person, without the common prefix `SIG`.
fn names(signals: &[i32]) -> String {
    let name = |signal: &i32| match nix::sys::signal::Signal::try_from(*signal) {
        Ok(signal) => signal.as_str().trim_start_matches("SIG").to_owned(),
        Err(_) => signal.to_string(),
    };
    signals.iter().map(name).collect::<Vec<_>>().join(", ")
}
