//! Rounds of review: work that runs of reviewers send back again and again waits longer each time, and then for a person.

use crate::model::clock::Timestamp;
use crate::model::counted::Counted;
use crate::model::outcome::{BlockKind, Outcome};
use crate::model::state::Then;
use crate::rules::retry::{self, Decision, Tally};

/// How many requests of changes in a row block a task: as many as failures do.
const LIMIT: u32 = 5;

/// What a run comes to that has requested changes, after this many requests in a row of such runs, this one included.
pub(crate) fn bounded(
    decision: Decision,
    rounds: u32,
    reviewer: &str,
    reason: &str,
    tally: Tally,
    now: Timestamp,
) -> Decision {
    if decision.outcome != Outcome::ChangesRequested {
        return decision;
    }
    if rounds < LIMIT {
        let (pause, then) = retry::after_pause(tally.jitter.pause(rounds), tally, now);
        return Decision { then, pause, ..decision };
    }
    let error = format!(
        "{reviewer} has requested changes {} in a row, the last time: {reason}. \
         Say what to do in a comment and `unblock` it, or accept the work with `complete`",
        Counted(rounds, "time")
    );
    Decision { then: Then::Blocked(BlockKind::NeedsInput), error: Some(error), ..decision }
}
