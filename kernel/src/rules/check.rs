//! Checks: a command, run after the worker's run, has to prove the work before it counts.
//!
//! See decision 0098.

use crate::model::clock::Timestamp;
use crate::model::id::RunId;
use crate::model::outcome::{BlockKind, EndCause, Ending, Outcome, StopReason};
use crate::model::state::{Gate, Then};
use crate::model::status::WasDone;
use crate::model::verdict::Verdict;
use crate::rules::failure_text::{OUT_OF_MEMORY, by_signal, last_line};
use crate::rules::retry::{self, Checked, Decision, Errand, Tally};

/// Sends handed-over work to its check, for a task that has one. Work that a reviewer's run approved is checked again:
/// the reviewer has the author's workspace, and may have changed the proved files.
pub(crate) fn await_check(decision: Decision, run: RunId) -> Decision {
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

/// Decides about the end of a run: for a finished check by its result, otherwise as [`retry::decide`] does.
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

/// Decides by the result of a check; none when the check proved nothing, because it did not run or was ended from
/// outside.
fn by_check(checked: Checked, ending: &Ending, tally: Tally, now: Timestamp) -> Option<Decision> {
    let failure = match &ending.cause {
        EndCause::Exited { code: 0 } => {
            return Some(retry::plain(Outcome::CheckPassed, checked.proved, tally.failures));
        }
        EndCause::Exited { code } => format!("exit code {code}"),
        // The lane gives meanings to exit codes, but a check has no lane: each code is a plain failure.
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
