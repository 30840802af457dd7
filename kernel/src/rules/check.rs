//! Checks: what a worker hands over counts when a command has proved it, which is a run of its own.

use crate::model::clock::Timestamp;
use crate::model::id::RunId;
use crate::model::outcome::{BlockKind, EndCause, Ending, Outcome, StopReason};
use crate::model::state::{Gate, Then};
use crate::model::status::WasDone;
use crate::model::verdict::Verdict;
use crate::rules::reason::{OUT_OF_MEMORY, by_signal, last_line};
use crate::rules::retry::{self, Checked, Decision, Errand, Tally};

/// What the end of a worker's run comes to where its task has a check: work that is handed over waits for it, and so does work that a
/// reviewer's run has approved. A reviewer has the workspace as the author had it, and may have changed what the check before has proved.
pub(crate) fn unproved(decision: Decision, run: RunId) -> Decision {
    if !matches!(decision.outcome, Outcome::Completed | Outcome::ReviewRequested | Outcome::Approved) {
        return decision;
    }
    let then = match decision.then {
        Then::Done | Then::Review => Then::Again(Gate::Check(run)),
        Then::Archived(WasDone::Yes) => Then::Archived(WasDone::No),
        other @ (Then::Blocked(_) | Then::Triage | Then::Again(_) | Then::Archived(WasDone::No)) => other,
    };
    Decision { then, ..decision }
}

/// Decides what the end of a run comes to: as [`retry::decide`] does, and for a check that ran by what it says of the work.
pub(crate) fn decide(
    verdict: Option<&Verdict>,
    stop: Option<StopReason>,
    ending: &Ending,
    tally: Tally,
    now: Timestamp,
) -> Decision {
    let decision = match tally.errand {
        Errand::Check(checked) if verdict.is_none() && stop.is_none() => {
            by_check(checked, ending, tally, now)
        }
        Errand::Work | Errand::Review | Errand::Check(_) => None,
    };
    decision.unwrap_or_else(|| retry::decide(verdict, stop, ending, tally, now))
}

/// What the end of a check says of the work; none where it says nothing: the check did not run, or not to its end, for a reason
/// that is not its own.
fn by_check(checked: Checked, ending: &Ending, tally: Tally, now: Timestamp) -> Option<Decision> {
    let failure = match &ending.cause {
        EndCause::Exited { code: 0 } => {
            return Some(retry::plain(Outcome::CheckPassed, checked.proved, tally.failures));
        }
        EndCause::Exited { code } => format!("exit code {code}"),
        // What an exit code means to a lane it does not mean to a check.
        EndCause::RateLimited { .. } | EndCause::NotLoggedIn { .. } | EndCause::OwnLimit(_) => {
            format!("exit code {}", ending.exit_code.unwrap_or(-1))
        }
        EndCause::Signaled { signal } => by_signal(*signal, ending),
        EndCause::TimedOut => "it ran longer than its limit".to_owned(),
        EndCause::OutOfMemory => OUT_OF_MEMORY.to_owned(),
        EndCause::Stopped(_)
        | EndCause::SpawnFailed { .. }
        | EndCause::LostReboot
        | EndCause::ShimKilled
        | EndCause::NeverStarted
        | EndCause::SessionGone => return None,
    };
    let mut error = format!("the check failed: {failure}");
    for more in
        [last_line(ending), ending.denied.as_ref().map(|denied| denied.text.clone())].into_iter().flatten()
    {
        error.push_str("; ");
        error.push_str(&more);
    }
    let gave_up = checked.failed.saturating_add(1) >= checked.limit;
    let (pause, again) = retry::after_turn(tally, now);
    let then = if gave_up { Then::Blocked(BlockKind::GaveUp) } else { again };
    Some(Decision { pause, error: Some(error), ..retry::plain(Outcome::CheckFailed, then, tally.failures) })
}
