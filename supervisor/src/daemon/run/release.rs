//! The wait for a person who decides about a run that cannot be ended at present.

use kernel::{ActorKind, EventFilter, EventId, EventKind, Run, StopReason, View};

use super::context::{Context, RETRY};
use super::key::TaskKey;
use super::live::Phase;
use super::report::Report;
use crate::host::watch::Watched;
use crate::service::BoardHandle;

/// What keeps a run whose processes are gone from its end: the host lacks something.
pub(in crate::daemon) struct Trouble<'a> {
    context: &'a Context,
    board: &'a BoardHandle,
    key: &'a TaskKey,
    run: &'a Run,
    /// A request made before it was shown expected only the worker's end.
    shown_at: Option<EventId>,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum Next {
    /// Try again.
    Again,
    /// End the run without what cannot be had: a person has taken the task back, in this way.
    DoWithout(StopReason),
}

impl<'a> Trouble<'a> {
    /// Nothing has been in the way yet.
    pub(in crate::daemon) fn new(
        context: &'a Context,
        board: &'a BoardHandle,
        key: &'a TaskKey,
        run: &'a Run,
    ) -> Self {
        Trouble { context, board, key, run, shown_at: None }
    }

    /// Whose end it is in the way of.
    pub(in crate::daemon) fn key(&self) -> &TaskKey {
        self.key
    }

    /// Shows what is in the way, and waits for the next try or for a person.
    pub(in crate::daemon) async fn wait(&mut self, why: &str) -> Next {
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
            Ok(Release::Look | Release::Closed) => {
                tokio::time::sleep(RETRY).await;
                Next::Again
            }
            Err(_) => Next::Again,
        }
    }
}

/// What a person has decided about a run after an event.
///
/// # Errors
/// Fails where the board cannot be read.
pub(in crate::daemon) fn decided(
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

/// The same on a board of this daemon; none where it cannot be read.
pub(super) fn is_decided(board: &BoardHandle, run: &Run, since: EventId) -> Option<StopReason> {
    board.readers().with(|view| decided(view, run, since)).ok().flatten()
}

/// How the wait for a person ended.
pub(super) enum Release {
    /// A person takes the task back, or has decided about it, in this way.
    Freed(StopReason),
    /// One of the processes has ended.
    Look,
    /// The board is closed.
    Closed,
}

/// Waits until a person takes back, or decides about, a run of which nobody knows whether it lives, or until one of its
/// processes has ended.
pub(super) async fn wait_for_release(
    board: &BoardHandle,
    run: &Run,
    since: EventId,
    watch: Option<i32>,
) -> Release {
    let mut changes = board.changes();
    let watched = match watch.map(Watched::open) {
        Some(Ok(watched)) => Some(watched),
        // Out of descriptors; the person's word is waited for all the same.
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
        // Cancel-safe both: the version of the board and the end of a process stay to be seen.
        tokio::select! {
            told = changes.changed() => if told.is_err() {
                return Release::Closed;
            },
            _ = ended => return Release::Look,
        }
    }
}
