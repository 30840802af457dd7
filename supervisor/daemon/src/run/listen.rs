//! Follows the output of the agent of a live run: records its usage, and ends the run if its service refuses requests for
//! too long. Meanwhile, messages are delivered to the agent.
//!
//! The shim writes the output to a file that no worker can access. A file that has grown is read again from its beginning:
//! an agent writes little, and the pauses limit the cost.
//!
//! The reader is the one for the end of the run. A reader that continued at its last position would be second code for the
//! same formats, with a state that has to outlive the daemon.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kernel::Spent;
use shim::rundir::{RunDir, StopReason, StopRequest, VERSION};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::command_start::tell_started;
use super::context::Context;
use super::key::TaskKey;
use super::messages::{self, WatchedRun};
use super::overdue;
use super::run_state::RunState;
use host::watch::Watched;
use service::BoardHandle;
use setup::lanes::{EndingRules, SoFar, read_so_far};

/// Shortest pause between two reads of one run.
const PAUSE: Duration = Duration::from_secs(5);
/// Bytes of output for which the pause grows by a second, so that reading takes about a hundredth of a processor.
const BYTES: u64 = 1024 * 1024;
/// Longest pause between two reads.
const LONGEST: Duration = Duration::from_mins(5);
/// Time within which a command that does nothing ends, also on a loaded host.
const MOMENT: Duration = Duration::from_millis(50);
/// Permit for a read. The output of one run is read at a time, for any number of runs.
static TURN: Semaphore = Semaphore::const_new(1);

/// Waits for the end of a run's shim. Meanwhile, follows its agent, delivers messages, records the start of its command, and
/// watches its deadline.
pub(super) async fn until_ended(
    context: &Context,
    board: &BoardHandle,
    live: WatchedRun<'_>,
) -> io::Result<()> {
    let WatchedRun { key, dir, watched, followed, .. } = live;
    // The other futures are dropped when the shim ends. This is safe: the output and the record of the start are read once
    // more at the end of the run.
    tokio::select! {
        ended = watched.ended() => ended,
        never = listen(context, board, live) => match never {},
        never = messages::deliver(context, board, live) => match never {},
        never = record_start(context, board, live) => match never {},
        never = overdue::at_deadline(key, dir, watched, followed) => match never {},
    }
}

/// Records the start of the command of a launched run, unless it ends at once: then its start and its end share a commit.
async fn record_start(
    context: &Context,
    board: &BoardHandle,
    WatchedRun { key, run, dir, followed, .. }: WatchedRun<'_>,
) -> Infallible {
    if let Some(followed) = followed {
        followed.started().await;
        tokio::time::sleep(MOMENT).await;
        if tell_started(context, board, key, run, dir).await {
            followed.note_start_told();
        }
    }
    std::future::pending().await
}

async fn listen(
    context: &Context,
    board: &BoardHandle,
    WatchedRun { key, run, dir, watched, followed }: WatchedRun<'_>,
) -> Infallible {
    let rules = match followed {
        Some(followed) => Some(Arc::clone(&followed.rules)),
        None => recorded_rules(dir).await,
    };
    let Some(rules) = rules.filter(|rules| rules.is_heard()) else {
        return std::future::pending().await;
    };
    let dir = Arc::new(dir.clone());
    let (mut pause, mut length, mut known) = (PAUSE, 0, Spent::default());
    let mut refused_since: Option<Instant> = None;
    loop {
        tokio::time::sleep(pause).await;
        // The permit is dropped at the end of this block, before the board is written.
        let looked = {
            let Ok(_turn) = TURN.acquire().await else { continue };
            let (rules, dir) = (Arc::clone(&rules), Arc::clone(&dir));
            tokio::task::spawn_blocking(move || look(&dir, &rules, length)).await
        };
        if let Ok(Some((now, SoFar { spent, is_refused }))) = looked {
            length = now;
            pause = Duration::from_secs(length / BYTES).clamp(PAUSE, LONGEST);
            if spent != known {
                known = spent.clone();
                let recorded = board.write(move |board| board.record_spent(run, &spent)).await;
                if let Err(error) = recorded {
                    tracing::debug!(task = %key, %run, %error, "usage_not_recorded");
                }
            }
            refused_since = is_refused.then(|| refused_since.unwrap_or_else(Instant::now));
        }
        // The proxy counts refusals as well, for an agent whose output does not show them.
        let answered = rules.refused_for(&context.host.proxies.contact((board.id(), run)).replies);
        let refused_for = refused_since.map(|since| since.elapsed()).max(answered);
        if let (Some(refused_for), Some(limit)) = (refused_for, rules.retry_limit())
            && refused_for >= limit
        {
            tracing::info!(task = %key, %run, "refused_for_too_long");
            end(context, key, &dir, watched).await;
            return std::future::pending().await;
        }
    }
}

/// Reads the rules of a run from its directory, retrying until it succeeds; none if the directory has none.
async fn recorded_rules(dir: &RunDir) -> Option<Arc<EndingRules>> {
    loop {
        let path = dir.path().to_owned();
        match tokio::task::spawn_blocking(move || RunState::read(&path)).await {
            Ok(Ok(run_state)) => return run_state.map(|run_state| Arc::new(run_state.rules)),
            Ok(Err(_)) | Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Reads the output; none if its length is still `before`, or it cannot be read.
fn look(dir: &RunDir, rules: &EndingRules, before: u64) -> Option<(u64, SoFar)> {
    let (stdout, length) = dir.stdout_so_far().ok()?;
    (length != before).then(|| (length, read_so_far(&stdout, rules)))
}

/// Requests the end of the run from its shim, and sees that the request is carried out.
async fn end(context: &Context, key: &TaskKey, dir: &RunDir, watched: &Watched) {
    let grace = context.service.config().worker.grace();
    let request = StopRequest {
        version: VERSION,
        reason: StopReason::Refused,
        quiet_ms: 0,
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
    };
    let asked = dir.request_stop(&request).map_err(|e| base::failure::with_causes(&e));
    let asked = asked.and_then(|()| watched.ask_to_end().map_err(|e| e.to_string()));
    if let Err(error) = asked {
        // Without the request, the run ends at its deadline.
        tracing::warn!(task = %key, %error, "stop_not_delivered");
    }
    overdue::as_asked(key, dir, watched, &request).await;
}
