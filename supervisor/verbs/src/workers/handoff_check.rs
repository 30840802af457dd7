//! Checks that the files and commits that a worker's verdict names exist.

use kernel::{ActorKind, Handoff};

use api::Call;
use base::failure::Failure;
use daemon::{Search, search_claimed};

/// Refuses the verdict of a live run that names missing files or commits. The board itself checks the tasks that a
/// verdict names.
pub(crate) async fn require(call: &Call, handoff: &Handoff) -> Result<(), Failure> {
    let Some(run) = call.actor.run.as_ref().filter(|_| call.actor.kind == ActorKind::Worker) else {
        return Ok(());
    };
    // The limits are checked first: the search costs more than the request that causes it.
    handoff.within_limits()?;
    let run = run.run;
    // A run that already has a verdict gets its earlier reply or a refusal from the board, without a search.
    if call.read(move |view| Ok(view.expect_run(run)?.verdict.is_some())).await? {
        return Ok(());
    }
    let (service, board, handoff) = (call.service.clone(), call.board()?.name().clone(), handoff.clone());
    let jobs = call.service.jobs();
    let of = (board.clone(), run);
    if jobs.was_cut_short(&of) {
        return Ok(());
    }
    let search = move |cancel: &_| search_claimed(service.root(), &board, run, &handoff, cancel);
    let why = match jobs.run(&of, search).await {
        Ok(Search::Founded) => return Ok(()),
        Ok(Search::Unfounded(failure)) => return Err(failure),
        Ok(Search::CutShort(why)) | Err(why) => why,
    };
    // A search that was cut short does not refuse the verdict. The end of the run reports missing files.
    if jobs.note_cut_short(of) {
        tracing::warn!(%run, error = %why, "claims_not_looked_for");
    }
    Ok(())
}
