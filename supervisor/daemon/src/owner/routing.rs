//! Asks profiles without a person: the router about unassigned tasks, and the overseer about missions.

use kernel::{Actor, BoardName, Error, ProposalKind, ReviewTerms};

use service::Service;
use setup::automation::proposals::Maker;

/// Limit on the tasks of one board asked about at once. Their commit triggers the next read.
const AT_ONCE: u32 = 16;

/// Asks the router about each ready task without an assignee, once. Blocks.
pub(super) fn ask_router(service: &Service, name: &BoardName) {
    let config = service.config();
    let Some(maker) = Maker::find(ProposalKind::Route, &service.roster(), &config) else { return };
    let Ok(board) = service.board(name) else { return };
    let limits = config.mission_limits();
    // An unreadable board is reported by the read that follows.
    let unrouted = board.readers().with(|view| view.unrouted(&limits, AT_ONCE)).unwrap_or_default();
    if unrouted.is_empty() {
        return;
    }
    let ask = move |board: &mut kernel::Board<'_>| {
        for task in unrouted {
            let new = maker.asked(task.id.clone(), task.tenant.as_ref(), None, &config);
            match board.attempt(|board| board.propose(new, &Actor::system())) {
                Ok(_) => {}
                Err(error @ Error::Storage { .. }) => return Err(error),
                // The task has changed since it was read; the next read sees that.
                Err(error) => tracing::debug!(task = %task.id, %error, "not_routed"),
            }
        }
        Ok(())
    };
    board.submit("router_not_asked", ask);
}

/// Asks the overseer about the missions of a board that are due for a review. Blocks.
pub(super) fn ask_overseer(service: &Service, name: &BoardName) {
    let config = service.config();
    let terms = config.triage.review_terms();
    if terms == ReviewTerms::default() {
        return;
    }
    let Some(maker) = Maker::find(ProposalKind::Progress, &service.roster(), &config) else { return };
    let Ok(board) = service.board(name) else { return };
    let due = board.readers().with(|view| view.due_reviews(&terms, AT_ONCE)).unwrap_or_default();
    if due.is_empty() {
        return;
    }
    let ask = move |board: &mut kernel::Board<'_>| {
        // Read again in the transaction: a mission that was asked about meanwhile, or has ended, is not due any more.
        for mission in board.due_reviews(&terms, AT_ONCE)? {
            let new = maker.asked(mission.id.clone(), mission.tenant.as_ref(), None, &config);
            if let Some(refused) = board.ask_for_review(new)? {
                tracing::warn!(mission = %mission.id, refused, "mission_not_reviewed");
            }
        }
        Ok(())
    };
    board.submit("overseer_not_asked", ask);
}
