//! What the owner loop asks of a board: each question a task of its own, whose answer is an event.

use std::sync::Arc;
use std::time::Duration;

use kernel::{BoardName, Clock as _};

use super::backoff::Kept;
use super::event::Event;
use super::link::OwnerLink;
use crate::daemon::run::context::Context;
use crate::daemon::run::key::TaskKey;

/// How long the reply of a request is kept for a repeat; a client gives up after a minute.
pub(crate) const REPLY_AGE: Duration = Duration::from_hours(24);

/// Lets a board promote what is due, and reports that to the owner loop.
pub(in crate::daemon) fn wake_board(context: &Arc<Context>, link: &OwnerLink, name: BoardName) {
    let (shared, link) = (Arc::clone(context), link.clone());
    context.tasks.spawn(async move {
        let woken = match shared.service.board(&name) {
            Ok(board) => board.write(|board| board.wake_due()).await,
            Err(failure) => Err(failure),
        };
        link.send(Event::Woken(name, woken.map(drop))).await;
    });
}

/// Records on its board that nothing here can run a task.
pub(in crate::daemon) fn note_nonspawnable(context: &Arc<Context>, key: TaskKey, why: String) {
    let shared = Arc::clone(context);
    context.tasks.spawn(async move {
        let noted = match shared.service.board(&key.board) {
            Ok(board) => board.write(move |board| board.note_nonspawnable(&key.task, &why)).await,
            Err(failure) => Err(failure),
        };
        if let Err(error) = noted {
            tracing::warn!(%error, "nonspawnable_not_noted");
        }
    });
}

/// Has the boards hold who has spent a budget of today as it is configured now, and nobody else.
pub(in crate::daemon) fn apply_budgets(context: &Context) {
    for board in context.service.served() {
        let Ok(writer) = board.writer() else { continue };
        let applied = |result: Result<(), kernel::Error>| {
            if let Err(error) = result {
                tracing::warn!(%error, "budgets_not_applied");
            }
        };
        writer.submit(|board| board.apply_budgets(), applied);
    }
}

/// Has a board keep a breaker, or keep it no more. The jobs of one board are done in the order in which they are asked for.
pub(in crate::daemon) fn keep_breaker(context: &Context, board: &BoardName, kept: Kept) {
    let Ok(handle) = context.service.board(board) else { return };
    let Ok(writer) = handle.writer() else { return };
    let done = |result: Result<(), kernel::Error>| {
        if let Err(error) = result {
            tracing::warn!(%error, "breaker_not_kept");
        }
    };
    match kept {
        Kept::Open(on, why, until) => {
            tracing::warn!(%board, %on, why, "breaker_open");
            writer.submit(move |board| board.open_breaker(&on, &why, until).map(drop), done);
        }
        Kept::Closed(on) => {
            tracing::info!(%board, %on, "breaker_closed");
            writer.submit(move |board| board.close_breaker(&on), done);
        }
    }
}

/// Forgets the stored replies of requests that nobody repeats any more.
pub(in crate::daemon) fn forget_old_requests(context: &Arc<Context>, boards: &[BoardName]) {
    let before = kernel::SystemClock.now().before(REPLY_AGE);
    for name in boards {
        let name = name.clone();
        let shared = Arc::clone(context);
        context.tasks.spawn(async move {
            let forgotten = match shared.service.board(&name) {
                Ok(board) => board.write(move |board| board.forget_requests(before)).await,
                Err(failure) => Err(failure),
            };
            if let Err(error) = forgotten {
                tracing::warn!(board = %name, %error, "old_requests_not_forgotten");
            }
        });
    }
}
