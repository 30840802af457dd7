//! Withholds the handoff of a run that leaves changes uncommitted, although its task requires a commit.

use crate::model::outcome::{BlockKind, EndCause, Ending, OnCleanExit};
use crate::model::run::{Purpose, Run};
use crate::model::verdict::{Blocking, Handoff, Verdict};

/// Returns true if a run hands its work over: by its verdict, or by a clean exit that completes the task.
pub(crate) fn hands_over(run: &Run, ending: &Ending) -> bool {
    let is_implied = || {
        let is_clean = matches!(ending.cause, EndCause::Exited { code: 0 });
        run.stop_reason.is_none() && is_clean && matches!(ending.result_policy, OnCleanExit::Complete { .. })
    };
    let hands_over = match &run.verdict {
        Some(Verdict::Complete(_) | Verdict::RequestReview(_)) => true,
        Some(
            Verdict::Block(_)
            | Verdict::Approve
            | Verdict::RequestChanges { .. }
            | Verdict::Archive { .. }
            | Verdict::Move { .. },
        ) => false,
        None => is_implied(),
    };
    hands_over && run.purpose == Purpose::Work
}

/// Returns the run with a block for its uncommitted changes as its verdict, and the withheld handoff. Returns none for
/// a run that hands nothing over, or that has committed everything that its task requires.
pub(crate) fn withheld(run: &Run, ending: &Ending) -> Option<(Run, Handoff)> {
    let reason = ending.uncommitted.clone().filter(|_| hands_over(run, ending))?;
    let handoff = match (&run.verdict, &ending.result_policy) {
        (Some(Verdict::Complete(handoff)), _) => handoff.clone(),
        (Some(Verdict::RequestReview(request)), _) => request.handoff.clone(),
        (None, OnCleanExit::Complete { summary }) => {
            Handoff { summary: summary.clone(), ..Handoff::default() }
        }
        _ => Handoff::default(),
    };
    let blocking = Blocking { kind: BlockKind::NeedsInput, reason: Some(reason), ..Blocking::default() };
    Some((Run { verdict: Some(Verdict::Block(blocking)), ..run.clone() }, handoff))
}
