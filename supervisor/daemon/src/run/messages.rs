//! Delivers messages to the agent of a live run: from the board into the run directory, and their receipts back.
//!
//! A message is stored and numbered on the board before it is posted. A daemon does not know which messages an earlier
//! daemon has posted, so it posts them again under the same numbers. The shim passes each number on once, so a crash
//! of the daemon duplicates no message.

use std::convert::Infallible;

use kernel::{MessageNews, MessageState, Readers, RunId};
use rustix::process::Signal;
use shim::rundir::{AgentMessage, MessagesRecord, Receipt, RunDir, RunDirError};
use shim::shortage::unless_short;

use super::context::{Context, RETRY};
use super::followed::{self, Followed};
use super::key::TaskKey;
use base::failpoint;
use base::failure::{Failure, with_causes};
use host::watch::Watched;
use service::BoardHandle;

/// Live run, with its directory and its watched shim.
#[derive(Clone, Copy)]
pub(super) struct WatchedRun<'a> {
    pub(super) key: &'a TaskKey,
    pub(super) run: RunId,
    pub(super) dir: &'a RunDir,
    pub(super) watched: &'a Watched,
    /// Facts of a run that this daemon has launched; none for a run of an earlier daemon.
    pub(super) followed: Option<&'a Followed>,
}

/// Delivers messages as long as the run lives. The future may be dropped at any time: the remaining messages are posted
/// when delivery starts again, and the remaining receipts are recorded then or at the end of the run.
pub(super) async fn deliver(
    context: &Context,
    board: &BoardHandle,
    WatchedRun { key, run, dir, watched, followed }: WatchedRun<'_>,
) -> Infallible {
    let wakeup = context.wakeups.register(key);
    let takes_messages = if let Some(followed) = followed {
        followed.takes_messages
    } else {
        let dir = dir.clone();
        let spec = tokio::task::spawn_blocking(move || dir.spec()).await;
        spec.is_ok_and(|spec| spec.is_ok_and(|spec| followed::takes_messages(&spec)))
    };
    if !takes_messages {
        return std::future::pending().await;
    }
    let mut done = Done::default();
    loop {
        match pass_on(board, run, dir, watched, &mut done).await {
            Ok(()) => wakeup.notified().await,
            Err(error) => {
                tracing::warn!(task = %key, %run, %error, "messages_not_passed_on");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Progress of this daemon with the messages of a run.
#[derive(Debug, Default)]
struct Done {
    /// Number of the last posted message.
    posted: u32,
    /// Receipts that the board has.
    recorded: MessagesRecord,
}

async fn pass_on(
    board: &BoardHandle,
    run: RunId,
    dir: &RunDir,
    watched: &Watched,
    done: &mut Done,
) -> Result<(), Failure> {
    let (readers, place, posted) = (board.readers().clone(), dir.clone(), done.posted);
    let looked = tokio::task::spawn_blocking(move || post(&readers, run, &place, posted));
    let (posted, record) = looked.await.map_err(|panic| Failure::failed(panic.to_string()))??;
    if posted > done.posted {
        failpoint::pass("after-post");
        done.posted = posted;
        // A shim reads the posted messages once it has written its pid record. Before that, its signal handler may not
        // be installed, and SIGUSR1 would end it (signal(7)).
        if dir.pid().ok().flatten().is_some() {
            watched.signal(Signal::USR1).map_err(|e| Failure::failed(e.to_string()))?;
        }
    }
    if record != done.recorded {
        let news = news_of(&record);
        board.write(move |board| board.record_messages(run, &news)).await?;
        done.recorded = record;
    }
    Ok(())
}

/// Posts the queued messages after a number. Returns the last posted number and the shim's receipts. Blocks.
fn post(readers: &Readers, run: RunId, dir: &RunDir, after: u32) -> Result<(u32, MessagesRecord), Failure> {
    let failed = |e| Failure::failed(with_causes(&e));
    let waiting = readers.with(|view| view.queued_messages(run))?;
    let mut posted = after;
    for message in waiting.into_iter().filter(|message| message.number > after) {
        let id = uuid::Uuid::new_v4().to_string();
        let letter = AgentMessage { number: message.number, id, text: message.body };
        dir.post(&letter).map_err(failed)?;
        posted = message.number;
    }
    Ok((posted, dir.messages().map_err(failed)?.unwrap_or_default()))
}

/// Returns the receipts that the shim of a run has recorded. Blocks.
///
/// # Errors
/// Fails only if the host lacks a resource at present. A missing or unreadable record yields no receipts.
pub(super) fn last_news(dir: &RunDir) -> Result<Vec<MessageNews>, RunDirError> {
    let record = unless_short(dir.messages())?.flatten();
    Ok(record.map(|record| news_of(&record)).unwrap_or_default())
}

fn news_of(record: &MessagesRecord) -> Vec<MessageNews> {
    let news = |(number, receipt): (&u32, &Receipt)| {
        let (state, reason) = match receipt {
            Receipt::Written => (MessageState::Written, None),
            Receipt::Confirmed => (MessageState::Delivered, None),
            Receipt::Unread => (MessageState::NotDelivered, Some("its agent ended without reading it")),
            Receipt::Refused => (MessageState::NotDelivered, Some("its agent refused it")),
            Receipt::Closed => (MessageState::NotDelivered, Some("the conversation was over when it came")),
        };
        MessageNews { number: *number, state, reason: reason.map(str::to_owned) }
    };
    record.receipts.iter().map(news).collect()
}
