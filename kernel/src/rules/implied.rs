//! The verdict that the end of a run stands for where its worker gave none: a limit of its lane is a question, and a clean
//! exit in a lane whose work is reviewed is a request for that.

use crate::model::actor::ActorKind;
use crate::model::outcome::{BlockKind, EndCause, Ending, OnCleanExit, OwnLimit};
use crate::model::run::{Purpose, Run};
use crate::model::verdict::{Blocking, Handoff, Question, ReviewRequest, Verdict};

/// The run with the verdict that counts: its own, or else the one that its end stands for. A run that was ended on request has
/// none but its own.
pub(crate) fn with_verdict(run: Run, ending: &Ending) -> Run {
    if run.verdict.is_some() || run.stop_reason.is_some() {
        return run;
    }
    let verdict = match (&ending.cause, &ending.result_policy) {
        (EndCause::OwnLimit(limit), _) => Some(Verdict::Block(question(*limit))),
        (EndCause::Exited { code: 0 }, OnCleanExit::Review { summary }) if run.purpose == Purpose::Work => {
            let handoff = Handoff { summary: summary.clone(), ..Handoff::default() };
            let name = run.profile.as_ref().map_or("worker", |profile| profile.as_str());
            let work_by = format!("{}:{name}", ActorKind::Worker);
            // Nobody reviews their own work.
            let reviewer = ending.reviewer.clone().filter(|reviewer| Some(reviewer) != run.profile.as_ref());
            Some(Verdict::RequestReview(ReviewRequest { handoff, reviewer, work_by }))
        }
        _ => None,
    };
    Run { verdict, ..run }
}

fn question(limit: OwnLimit) -> Blocking {
    let reason = format!("the worker met the limit of its lane on {limit}");
    let text = format!("{reason}, and has not reported. May it go on?");
    Blocking {
        kind: BlockKind::NeedsInput,
        reason: Some(reason),
        question: Some(Question { text, ..Question::default() }),
    }
}
