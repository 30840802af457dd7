//! Verdicts that the end of a run implies when its worker gave none.
//!
//! A run that exceeded its budget is blocked. A run that met a limit of its lane asks whether to continue, and so does
//! the last turn toward a goal. A clean exit in a lane with reviews becomes a request for a review. A turn toward a goal
//! with a check becomes a completion, which the check then decides.

use crate::model::actor::ActorKind;
use crate::model::outcome::{BlockKind, EndCause, Ending, OnCleanExit, OwnLimit};
use crate::model::run::{Purpose, Run};
use crate::model::task::Goal;
use crate::model::verdict::{Blocking, Handoff, Question, ReviewRequest, Verdict};
use crate::rules::turns::GoalTurns;

/// Proof that a goal is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The check of the task, which runs after each turn.
    Check,
    /// The verdict of a worker, within a limit on the turns.
    Verdict(GoalTurns),
}

/// Returns the proof that a task's goal needs; none for a task without a goal. `taken` is the number of turns so far.
pub(crate) fn proof(goal: &Goal, has_check: Option<()>, taken: u32) -> Option<Proof> {
    let limit = goal.turns()?;
    Some(has_check.map_or(Proof::Verdict(GoalTurns { taken, limit }), |()| Proof::Check))
}

/// Returns the run with its effective verdict: its own, else the implied verdict. A run that was ended on request gets
/// no implied verdict.
pub(crate) fn with_verdict(run: Run, ending: &Ending, goal: Option<Proof>) -> Run {
    if run.verdict.is_some() || run.stop_reason.is_some() {
        return run;
    }
    let verdict = match (&ending.cause, &ending.result_policy) {
        _ if ending.over_budget.is_some() => Some(Verdict::Block(over_budget(ending.over_budget.clone()))),
        (EndCause::OwnLimit(limit), _) => Some(Verdict::Block(question(*limit))),
        (EndCause::Exited { code: 0 }, OnCleanExit::Review { summary }) if run.purpose == Purpose::Work => {
            let handoff = Handoff { summary: summary.clone(), ..Handoff::default() };
            let name = run.profile.as_ref().map_or("worker", |profile| profile.as_str());
            let work_by = format!("{}:{name}", ActorKind::Worker);
            // A profile does not review its own work.
            let reviewer = ending.reviewer.clone().filter(|reviewer| Some(reviewer) != run.profile.as_ref());
            Some(Verdict::RequestReview(ReviewRequest { handoff, reviewer, work_by }))
        }
        (EndCause::Exited { code: 0 }, OnCleanExit::TurnEnded { summary })
            if run.purpose == Purpose::Work =>
        {
            match goal {
                Some(Proof::Check) => {
                    Some(Verdict::Complete(Handoff { summary: summary.clone(), ..Handoff::default() }))
                }
                Some(Proof::Verdict(turns)) if turns.is_last() => Some(Verdict::Block(no_more(turns))),
                Some(Proof::Verdict(_)) | None => None,
            }
        }
        _ => None,
    };
    Run { verdict, ..run }
}

fn over_budget(reason: Option<String>) -> Blocking {
    Blocking { kind: BlockKind::Budget, reason, ..Blocking::default() }
}

fn question(limit: OwnLimit) -> Blocking {
    let reason = format!("the worker met the limit of its lane on {limit}");
    blocking_question(format!("{reason}, and has not reported. Continue?"), reason)
}

fn no_more(turns: GoalTurns) -> Blocking {
    let reason = format!("the goal was not reached within {} turns", turns.limit);
    blocking_question(format!("{reason}. Continue for as many again?"), reason)
}

fn blocking_question(text: String, reason: String) -> Blocking {
    Blocking {
        kind: BlockKind::NeedsInput,
        reason: Some(reason),
        question: Some(Question { text, ..Question::default() }),
        ..Blocking::default()
    }
}
