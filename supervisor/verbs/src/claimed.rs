//! Checks that the tasks and files which a worker names in its verdict exist.

use kernel::{ActorKind, Handoff};

use api::Call;
use base::failure::Failure;
use daemon::{Search, search_claimed};

/// Refuses the verdict of a live run that names files or commits which do not exist. The tasks that it names are the board's to look for.
pub(super) async fn require(call: &Call, handoff: &Handoff) -> Result<(), Failure> {
    let Some(own) = call.actor.run.as_ref().filter(|_| call.actor.kind == ActorKind::Worker) else {
        return Ok(());
    };
    // Before anything is looked for: a look costs more than to name what to look for.
    handoff.within_limits()?;
    let run = own.run;
    // One that has its verdict is refused with that, or gets its reply again.
    if call.read(move |view| Ok(view.expect_run(run)?.verdict.is_some())).await? {
        return Ok(());
    }
    let (service, board, handoff) = (call.service.clone(), call.board()?.name().clone(), handoff.clone());
    let looks = call.service.looks();
    let of = (board.clone(), run);
    if looks.was_cut_short(&of) {
        return Ok(());
    }
    let search = move |cancel: &_| search_claimed(service.root(), &board, run, &handoff, cancel);
    let why = match looks.look(&of, search).await {
        Ok(Search::Founded) => return Ok(()),
        Ok(Search::Unfounded(failure)) => return Err(failure),
        Ok(Search::CutShort(why)) | Err(why) => why,
    };
    // The verdict counts all the same: the end of the run says what was not there.
    if looks.note_cut_short(of) {
        tracing::warn!(%run, error = %why, "claims_not_looked_for");
    }
    Ok(())
}
