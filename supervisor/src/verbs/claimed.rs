//! What a worker hands over with its verdict exists.

use kernel::{ActorKind, Handoff};

use crate::api::{Call, blocking};
use crate::daemon::require_claimed;
use crate::failure::Failure;

/// Refuses the verdict of a live run that names files or commits which do not exist. The tasks that it names are the board's to look for.
pub(super) async fn require(call: &Call, handoff: &Handoff) -> Result<(), Failure> {
    let Some(own) = call.actor.run.as_ref().filter(|_| call.actor.kind == ActorKind::Worker) else {
        return Ok(());
    };
    let run = own.run;
    // One that has its verdict is told that, or gets its reply again.
    if call.read(move |view| Ok(view.expect_run(run)?.verdict.is_some())).await? {
        return Ok(());
    }
    let (service, board, handoff) = (call.service.clone(), call.board()?.name().clone(), handoff.clone());
    let looked = move || require_claimed(service.root(), &board, run, &handoff);
    blocking("what the worker hands over was not looked for", looked).await?
}
