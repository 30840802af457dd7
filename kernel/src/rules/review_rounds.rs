//! Review rounds: repeated requests of changes delay the work more and more, and finally block the task for a person.
//!
//! Only rounds count in which workers decide, since the last approval or the last change by a person. Failed checks
//! are no measure: a check that passes resets them.

use crate::model::clock::Timestamp;
use crate::model::counted::Counted;
use crate::model::outcome::{BlockKind, Outcome};
use crate::model::state::Then;
use crate::rules::retry::{self, Decision, Tally};

/// Number of consecutive requests of changes that block a task, equal to the default limit on failures.
const LIMIT: u32 = 5;

/// Decides about a run that has requested changes. `rounds` is the number of consecutive requests, this one included.
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
