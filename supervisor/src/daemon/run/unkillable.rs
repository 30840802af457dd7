//! What SIGKILL does not end: how it is shown, and the event that its run gets. The claim stays as long as it lives.

use kernel::{Run, RunId};
use shim::rundir::{RunDir, Straggler, UnkillableRecord};

use super::context::{Context, submit};
use super::key::TaskKey;
use super::report::Report;
use crate::host::ended;
use crate::service::BoardHandle;

/// Shows what the shim of a run has recorded as unkillable, if it has.
pub(super) async fn tell_unkillable(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: &Run,
    dir: &RunDir,
) {
    let Ok(Some(UnkillableRecord { processes, more, .. })) = dir.unkillable() else { return };
    note(board, key, run.id, &processes).await;
    context.tell(key, Report::Unkillable(run.id, in_words(&processes, more))).await;
}

/// Leaves an event at the task of a run, unless it has one.
pub(super) async fn note(board: &BoardHandle, key: &TaskKey, run: RunId, processes: &[Straggler]) {
    let told =
        |left: &Straggler| kernel::Straggler { pid: left.pid, name: left.name.clone(), state: left.state };
    let processes: Vec<kernel::Straggler> =
        processes.iter().take(UnkillableRecord::NAMED).map(told).collect();
    tracing::error!(task = %key, %run, ?processes, "unkillable");
    let noted = submit(board, move |board| board.note_unkillable(run, &processes)).await;
    if let Err(error) = noted {
        tracing::warn!(task = %key, %run, %error, "unkillable_not_noted");
    }
}

/// What is shown of a run of which these are left, and how many more.
pub(super) fn in_words(processes: &[Straggler], more: usize) -> String {
    let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "SIGKILL does not end {}{and_more}. The task is claimed until they have ended. A process in state D waits for a \
         file system or a device: put that right, or unmount it with `umount --force`",
        ended::named(processes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_named_and_counted() {
        let left = [Straggler { pid: 7, name: "cat".to_owned(), state: 'D' }];
        assert!(in_words(&left, 0).starts_with("SIGKILL does not end 7 (cat, state D). "));
        assert!(in_words(&left, 9).starts_with("SIGKILL does not end 7 (cat, state D) and 9 more. "));
    }
}
