//! Requests of the owner loop to boards. None makes the loop wait: each runs as a task or as a job of the board's writer.
//! A result that the loop needs comes back as an event.

use std::sync::Arc;
use std::time::Duration;

use kernel::{BoardName, Clock as _};

use super::backoff::BreakerChange;
use super::event::Event;
use super::link::OwnerLink;
use crate::run::context::Context;
use crate::run::key::TaskKey;
use service::Service;

/// Time for which the reply to a request is stored for a repeat. Clients give up after a minute.
pub const REPLY_AGE: Duration = Duration::from_hours(24);

/// Has a board promote the tasks that are due, and reports the result to the owner loop.
pub(crate) fn wake_board(context: &Arc<Context>, link: &OwnerLink, name: BoardName) {
    let (shared, link) = (Arc::clone(context), link.clone());
    context.tasks.spawn(async move {
        let woken = match shared.service.board(&name) {
            Ok(board) => board.written(|board| board.wake_due()).await,
            Err(failure) => Err(failure),
        };
        let event = match woken {
            Ok(Ok(_)) => Event::Woken(name, Ok(())),
            Ok(Err(error)) if error.is_damage() => Event::BoardDamaged(name, error.into()),
            Ok(Err(error)) => Event::Woken(name, Err(error.into())),
            Err(failure) => Event::Woken(name, Err(failure)),
        };
        link.send(event).await;
    });
}

/// Records on a task that no lane here can run it, with the reason.
pub(crate) fn note_nonspawnable(context: &Arc<Context>, key: TaskKey, why: String) {
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

/// Has each board recompute the stored times that are in the future because the clock was set back, and hold the payers
/// that have spent their budget of the day that it is now.
pub(crate) fn follow_set_clock(service: &Service) {
    for board in service.served() {
        let Ok(writer) = board.writer() else { continue };
        let name = board.name().clone();
        let followed = move |result: Result<kernel::ClockSet, kernel::Error>| match result {
            Ok(set) if set.is_empty() => {}
            Ok(set) => tracing::warn!(board = %name, recomputed = %set, "clock_set_back"),
            Err(error) => tracing::warn!(board = %name, %error, "times_not_recomputed"),
        };
        writer.submit(|board| board.follow_set_clock(), followed);
    }
    apply_budgets(service);
}

/// Has each board hold the payers that have spent a budget of today, by the present configuration, and release the
/// others.
pub(crate) fn apply_budgets(service: &Service) {
    for board in service.served() {
        board.submit("budgets_not_applied", |board| board.apply_budgets());
    }
}

/// Stores a breaker on a board, or removes it. Jobs of one board run in the order of submission.
pub(crate) fn keep_breaker(service: &Service, board: &BoardName, change: BreakerChange) {
    let Ok(handle) = service.board(board) else { return };
    let failed = "breaker_not_kept";
    match change {
        BreakerChange::Open(on, why, until) => {
            tracing::warn!(%board, %on, why, "breaker_open");
            handle.submit(failed, move |board| board.open_breaker(&on, &why, until));
        }
        BreakerChange::Closed(on) => {
            tracing::info!(%board, %on, "breaker_closed");
            handle.submit(failed, move |board| board.close_breaker(&on));
        }
    }
}

/// Deletes stored replies that are older than [`REPLY_AGE`].
pub(crate) fn forget_old_requests(context: &Arc<Context>, boards: &[BoardName]) {
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
