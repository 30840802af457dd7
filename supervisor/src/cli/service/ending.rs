//! The stop command of the service's unit: stops the daemon, and ends processes that a dead daemon left.
//!
//! See decision 0123.

use std::time::Duration;

use kernel::Clock as _;
use rustix::process::Signal;

use crate::cli::CommandLine;
use crate::client::Client;
use crate::mcp;
use crate::output::{LogFormat, start_log};
use crate::resources::surface;
use base::failure::Failure;
use base::owner::OwnerLock;
use base::terminal::complain;
use daemon::{DaemonMode, StopPlan};
use host::service_manager::{Job, Manager};
use host::watch;
use setup::config::Tuning;
use verbs::Stop;

/// Time limit of a stopping daemon's response.
const ANSWER: Duration = Duration::from_secs(10);
/// Time limit of a daemon's end after its last worker.
const FAREWELL: Duration = Duration::from_secs(15);
/// Time limit of the end of a dead daemon's processes.
const LEFT: Duration = Duration::from_mins(1);

/// Stops the daemon. A restart leaves the workers to the next daemon; any other stop drains. A daemon that does not
/// respond or end in time is killed; then `after_stop` ends its workers.
pub(super) async fn at_stop(client: &Client, manager: Manager, unit: &str) -> Result<u8, Failure> {
    let Some(owner) = OwnerLock::daemon(client.root()) else { return Ok(0) };
    let job = manager.job(unit).unwrap_or_else(|why| {
        complain(&format!("warning: it is unknown whether {unit} is restarted, so its workers end: {why}"));
        None
    });
    let stop = Stop { leave: job == Some(Job::Restart), ..Stop::default() };
    let limit = match tokio::time::timeout(ANSWER, client.call(&stop)).await {
        Ok(Ok(plan)) => {
            for line in plan.lines(kernel::SystemClock.now()) {
                complain(&line);
            }
            time_to_end(&plan)
        }
        Ok(Err(failure)) => {
            complain(&format!("error: {failure}"));
            Duration::ZERO
        }
        Err(_) => Duration::ZERO,
    };
    let fail = |e: std::io::Error| Failure::failed(format!("failed to watch the daemon: {e}"));
    let Some(process) = owner.pid.map(watch::open).transpose().map_err(fail)?.flatten() else { return Ok(0) };
    // The pid may have been reused before the handle was opened. If the lock still names it now, the handle is the
    // daemon's.
    if OwnerLock::owner(client.root()).and_then(|now| now.pid) != owner.pid {
        return Ok(0);
    }
    if !watch::ends_within(&process, limit).map_err(fail)? {
        complain("the daemon does not stop, so it is killed");
        watch::signal(&process, Signal::KILL).map_err(fail)?;
        watch::ends_within(&process, FAREWELL).map_err(fail)?;
    }
    Ok(0)
}

/// Returns the time that a daemon needs at most to stop by this plan.
fn time_to_end(plan: &StopPlan) -> Duration {
    let until = plan.until.map(|until| until.since(kernel::SystemClock.now())).unwrap_or_default();
    until + Duration::from_secs(plan.grace_seconds) + FAREWELL
}

/// Ends the processes that a dead daemon left if the unit is being stopped. After a crash, and for a restart, the next
/// daemon takes them over.
pub(super) async fn after_stop(line: &CommandLine, manager: Manager, unit: &str) -> Result<u8, Failure> {
    match manager.job(unit) {
        Ok(Some(Job::Stop)) => {}
        Ok(Some(Job::Restart | Job::Other) | None) => return Ok(0),
        Err(why) => {
            return Err(Failure::failed(format!("it is unknown whether {unit} is being stopped: {why}"))
                .hint("remaining workers continue; the next daemon takes them over"));
        }
    }
    let root = line.root()?;
    // A live daemon has a stop command of its own unit, and ends its workers itself.
    if OwnerLock::daemon(&root).is_some() || !root.has_runs() {
        return Ok(0);
    }
    start_log(line.output, "info", LogFormat::Auto);
    let ended = daemon::run(root, DaemonMode::Ending, Tuning::default(), mcp::mount(surface()), || {});
    match tokio::time::timeout(LEFT, ended).await {
        Ok(ended) => ended.map(|_| 0),
        Err(_) => Err(Failure::failed(format!("what the daemon left has not ended within {LEFT:?}"))
            .hint("supervisor status shows it")),
    }
}
