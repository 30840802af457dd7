//! Waits for a person's decision about a run that cannot be ended at present.

use kernel::{ActorKind, EventFilter, EventId, EventKind, Run, StopReason, View};

use super::context::{Context, RETRY};
use super::key::TaskKey;
use super::live::Phase;
use super::report::Report;
use host::watch::Watched;
use service::BoardHandle;

/// A shortage of the host that delays the end of a run without processes.
pub(crate) struct EndDelay<'a> {
    context: &'a Context,
    board: &'a BoardHandle,
    key: &'a TaskKey,
    run: &'a Run,
    /// Last event when the delay was first shown. An earlier request expected only the worker's end.
    shown_at: Option<EventId>,
}

/// Next step after a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Again,
    /// End the run without the unavailable records: a person has reclaimed the task, for this reason.
    DoWithout(StopReason),
}

impl<'a> EndDelay<'a> {
    /// Makes a record without any delay yet.
    pub(crate) fn new(context: &'a Context, board: &'a BoardHandle, key: &'a TaskKey, run: &'a Run) -> Self {
        EndDelay { context, board, key, run, shown_at: None }
    }

    /// Returns the run's key.
    pub(crate) fn key(&self) -> &TaskKey {
        self.key
    }

    /// Shows the delay, and waits for the next try or a person's decision.
    pub(crate) async fn wait(&mut self, why: &str) -> Next {
        if self.shown_at.is_none() {
            self.shown_at = self.board.readers().with(|view| view.last_event()).ok();
        }
        self.context.tell(self.key, Report::Delayed(Phase::Settling, why.to_owned())).await;
        let Some(since) = self.shown_at else {
            tokio::time::sleep(RETRY).await;
            return Next::Again;
        };
        match tokio::time::timeout(RETRY, wait_for_release(self.board, self.run, since, None)).await {
            Ok(Release::Freed(reason)) => Next::DoWithout(reason),
            // The wait returned early. Without this pause, the retries would spin.
            Ok(Release::Look | Release::Closed) => {
                tokio::time::sleep(RETRY).await;
                Next::Again
            }
            Err(_) => Next::Again,
        }
    }
}

/// Returns a person's decision about a run after an event.
///
/// # Errors
/// The board cannot be read.
pub(crate) fn decided(
    view: &View<'_>,
    run: &Run,
    since: EventId,
) -> Result<Option<StopReason>, kernel::Error> {
    let filter = EventFilter {
        since,
        task: Some(run.task_id.clone()),
        kinds: [EventKind::StopRequested, EventKind::Verdict].map(|kind| kind.to_string()).to_vec(),
        ..EventFilter::default()
    };
    let events = view.events(&filter)?;
    let Some(run) = view.run(run.id)? else { return Ok(None) };
    let is_persons = |event: &kernel::Event| event.actor_kind() == Some(ActorKind::Person);
    Ok(run.stop_reason.filter(|_| events.iter().any(is_persons)))
}

/// Returns a person's decision; none if the board cannot be read.
pub(super) fn is_decided(board: &BoardHandle, run: &Run, since: EventId) -> Option<StopReason> {
    board.readers().with(|view| decided(view, run, since)).ok().flatten()
}

/// Result of waiting for a person.
pub(super) enum Release {
    /// A person has reclaimed the task or decided about it, for this reason.
    Freed(StopReason),
    /// A process of the run has ended.
    Look,
    /// The board was closed.
    Closed,
}

/// Waits until a person decides about a run that may still live, or until one of its processes has ended.
pub(super) async fn wait_for_release(
    board: &BoardHandle,
    run: &Run,
    since: EventId,
    watch: Option<i32>,
) -> Release {
    let mut changes = board.changes();
    let watched = match watch.map(Watched::open) {
        Some(Ok(watched)) => Some(watched),
        // Out of descriptors; the person's decision is awaited all the same.
        Some(Err(error)) if error.raw_os_error() != Some(nix::errno::Errno::ESRCH as i32) => None,
        Some(Err(_)) => return Release::Look,
        None => None,
    };
    loop {
        if let Some(reason) = is_decided(board, run, since) {
            return Release::Freed(reason);
        }
        let ended = async {
            match &watched {
                Some(watched) => watched.ended().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        // Both are cancel-safe: the version of the board and the end of a process stay visible.
        tokio::select! {
            told = changes.changed() => if told.is_err() {
                return Release::Closed;
            },
            _ = ended => return Release::Look,
        }
    }
}
