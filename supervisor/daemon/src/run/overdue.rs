//! Watches for shims that do not end their run when it is due. A shim that was stopped by a signal ends no worker, and
//! its run would never end. The daemon continues such a shim, and kills it if that does not help.
//!
//! A killed shim proves nothing. Its remains are ended, with proof, as after any other kill.
//!
//! See decision 0135.

use std::convert::Infallible;
use std::time::Duration;

use rustix::process::Signal;
use shim::rundir::{Cause, OverdueRecord, ProcessStat, RunDir, StopRequest, VERSION, boottime_us};
use tokio::time::{Instant, timeout};

use super::followed::{Followed, due_us};
use super::key::TaskKey;
use host::watch::Watched;

/// Time after the due KILL for which a shim is left alone. A shim needs milliseconds, on a loaded host seconds.
const MARGIN: Duration = Duration::from_secs(2);
/// Interval between two looks at an overdue shim.
const LOOK: Duration = Duration::from_secs(1);
/// Number of times that a stopped shim is continued before it is killed, in case its sender repeats the stop.
const WAKES: u32 = 3;
/// Longest time for which a shim that is not stopped may be overdue.
const LONGEST: Duration = Duration::from_mins(1);

/// State of an overdue shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Has recorded the end of the run, or the processes that outlive SIGKILL.
    Its,
    /// Stopped by a signal.
    Stopped,
    /// Another state, or an unknown one.
    Else,
}

/// Makes sure that a shim ends its run at its deadline.
pub(super) async fn at_deadline(
    key: &TaskKey,
    dir: &RunDir,
    shim: &Watched,
    followed: Option<&Followed>,
) -> Infallible {
    let due = if let Some(followed) = followed {
        followed.due_us
    } else {
        let read = dir.clone();
        let spec = tokio::task::spawn_blocking(move || read.spec()).await;
        spec.ok().and_then(Result::ok).and_then(|spec| due_us(&spec))
    };
    if let Some(due) = due {
        let time_to = |now: u64| Duration::from_micros(due.saturating_sub(now));
        // Sleeping uses a clock that stops during suspend; the deadline's clock does not. So the rest is computed
        // again.
        let mut pause = time_to(boottime_us());
        while !pause.is_zero() {
            tokio::time::sleep(pause).await;
            pause = time_to(boottime_us());
        }
        end(key, dir, shim, Cause::Deadline).await;
    }
    std::future::pending().await
}

/// Makes sure that a shim ends its run as requested.
pub(super) async fn as_asked(key: &TaskKey, dir: &RunDir, shim: &Watched, request: &StopRequest) {
    let due = Duration::from_millis(request.quiet_ms.saturating_add(request.grace_ms));
    if timeout(due, shim.ended()).await.is_err() {
        end(key, dir, shim, Cause::Stopped { reason: request.reason }).await;
    }
}

/// Kills a shim that has not ended by the time of KILL for its run, unless it is still working on that.
async fn end(key: &TaskKey, dir: &RunDir, shim: &Watched, cause: Cause) {
    if timeout(MARGIN, shim.ended()).await.is_ok() {
        return;
    }
    let (since, mut wakes) = (Instant::now(), 0);
    loop {
        let read = dir.clone();
        let doing = tokio::task::spawn_blocking(move || look(&read)).await.unwrap_or(Doing::Else);
        let is_hung = match doing {
            Doing::Its => false,
            // A stopped shim can still do its work once it is continued.
            Doing::Stopped if wakes < WAKES => {
                wakes += 1;
                tracing::warn!(task = %key, "shim_stopped");
                if let Err(error) = shim.signal(Signal::CONT) {
                    tracing::warn!(task = %key, %error, "shim_not_woken");
                }
                false
            }
            Doing::Stopped => true,
            Doing::Else => since.elapsed() >= LONGEST,
        };
        if is_hung {
            tracing::error!(task = %key, ?cause, "overdue_shim_killed");
            // The cause is recorded before the kill, because the shim will leave no exit record.
            let (to, record) = (dir.clone(), OverdueRecord { version: VERSION, cause: cause.clone() });
            let noted = tokio::task::spawn_blocking(move || to.note_overdue(&record)).await;
            if let Ok(Err(error)) = noted {
                tracing::warn!(task = %key, error = %base::failure::with_causes(&error), "cause_not_noted");
            }
            if let Err(error) = shim.signal(Signal::KILL) {
                tracing::error!(task = %key, %error, "shim_not_killed");
            }
        }
        if timeout(LOOK, shim.ended()).await.is_ok() {
            return;
        }
    }
}

/// Determines the state of a shim. Blocks.
fn look(dir: &RunDir) -> Doing {
    let pid = dir.pid().ok().flatten().map(|record| record.shim.pid);
    // `t` is a traced process (proc_pid_stat(5)). Checked first, because a shim can also be stopped after it has
    // recorded the end.
    if let Some(Ok(stat)) = pid.map(ProcessStat::of_process)
        && matches!(stat.state, 'T' | 't')
    {
        return Doing::Stopped;
    }
    let has_recorded = matches!(dir.exit(), Ok(Some(_))) || matches!(dir.unkillable(), Ok(Some(_)));
    if has_recorded { Doing::Its } else { Doing::Else }
}
