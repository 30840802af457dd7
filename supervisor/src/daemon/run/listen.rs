//! What the agent of a live run says: what it has used is kept with the run, and a service that refuses it for too long ends it. What people
//! say to it is passed on meanwhile.
//!
//! The shim writes the file, in a directory that no worker reaches. It is read again from its beginning when it has grown: an agent
//! writes little, and the pauses bound what reading may take.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kernel::{RunId, Spent};
use shim::rundir::{RunDir, StopReason, StopRequest, VERSION};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::context::Context;
use super::key::TaskKey;
use super::messages;
use super::note::Note;
use super::overdue;
use crate::host::watch::Watched;
use crate::lanes::{EndingRules, SoFar, read_so_far};
use crate::service::BoardHandle;

/// Between two looks at one run, at least.
const PAUSE: Duration = Duration::from_secs(5);
/// The bytes read for each second of a pause: reading them takes a hundredth of a processor at most.
const BYTES: u64 = 1024 * 1024;
/// Between two looks, at most.
const LONGEST: Duration = Duration::from_mins(5);
/// One run is looked at at a time, however many there are.
static TURN: Semaphore = Semaphore::const_new(1);

/// Waits for the end of a run's shim, and listens to its agent meanwhile.
pub(super) async fn until_ended(
    context: &Context,
    board: &BoardHandle,
    (key, run): (&TaskKey, RunId),
    (dir, watched): (&RunDir, &Watched),
) -> io::Result<()> {
    // Both are dropped with its end: what they have read is read again when the run is over.
    tokio::select! {
        ended = watched.ended() => ended,
        never = listen(context, board, (key, run), (dir, watched)) => match never {},
        never = messages::deliver(context, board, (key, run), (dir, watched)) => match never {},
        never = overdue::at_deadline(key, dir, watched) => match never {},
    }
}

async fn listen(
    context: &Context,
    board: &BoardHandle,
    (key, run): (&TaskKey, RunId),
    (dir, watched): (&RunDir, &Watched),
) -> Infallible {
    let note = loop {
        let path = dir.path().to_owned();
        match tokio::task::spawn_blocking(move || Note::read(&path)).await {
            Ok(Ok(note)) => break note,
            Ok(Err(_)) | Err(_) => tokio::time::sleep(PAUSE).await,
        }
    };
    let Some(rules) = note.map(|note| note.rules).filter(EndingRules::is_heard) else {
        return std::future::pending().await;
    };
    let (rules, dir) = (Arc::new(rules), Arc::new(dir.clone()));
    let (mut pause, mut length, mut known) = (PAUSE, 0, Spent::default());
    let mut refused_since: Option<Instant> = None;
    loop {
        tokio::time::sleep(pause).await;
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
        // What its service has answered is known of an agent that writes nothing of it, too.
        let answered = rules.refused_for(&context.host.ways.answers((board.id(), run)));
        let refused_for = refused_since.map(|since| since.elapsed()).max(answered);
        if let (Some(refused_for), Some(limit)) = (refused_for, rules.retry_limit())
            && refused_for >= limit
        {
            tracing::info!(task = %key, %run, "refused_for_too_long");
            end(context, key, (&dir, watched)).await;
            return std::future::pending().await;
        }
    }
}

/// Reads what is there, unless it is no more than it was.
fn look(dir: &RunDir, rules: &EndingRules, before: u64) -> Option<(u64, SoFar)> {
    let (stdout, length) = dir.stdout_so_far().ok()?;
    (length != before).then(|| (length, read_so_far(&stdout, rules)))
}

/// Has the shim end the run.
async fn end(context: &Context, key: &TaskKey, (dir, watched): (&RunDir, &Watched)) {
    let grace = context.service.config().worker.grace();
    let request = StopRequest {
        version: VERSION,
        reason: StopReason::Refused,
        quiet_ms: 0,
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
    };
    let asked = dir.request_stop(&request).map_err(|e| crate::failure::with_causes(&e));
    let asked = asked.and_then(|()| watched.ask_to_end().map_err(|e| e.to_string()));
    if let Err(error) = asked {
        // Its time limit ends it.
        tracing::warn!(task = %key, %error, "stop_not_delivered");
    }
    overdue::as_asked(key, dir, watched, &request).await;
}
