//! Processes that outlive SIGKILL: their display, and the event of their run. The claim stays as long as they live.
//!
//! See decision 0135.

use kernel::{Counted, Run, RunId};
use shim::rundir::{RunDir, Straggler, UnkillableRecord, boottime_us};
use shim::stuck::Stuck;

use super::context::Context;
use super::key::TaskKey;
use super::live::Phase;
use super::report::Report;
use host::ended;
use service::BoardHandle;

/// Reports the processes that the shim of a run has recorded as unkillable, if any.
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

/// Records an event at the run's task and a log line, once per run.
pub(super) async fn note(board: &BoardHandle, key: &TaskKey, run: RunId, processes: &[Straggler]) {
    let told =
        |left: &Straggler| kernel::Straggler { pid: left.pid, name: left.name.clone(), state: left.state };
    let processes: Vec<kernel::Straggler> =
        processes.iter().take(UnkillableRecord::NAMED).map(told).collect();
    let stragglers = processes.clone();
    match board.write(move |board| board.note_unkillable(run, &stragglers)).await {
        Ok(true) => tracing::error!(task = %key, %run, ?processes, "unkillable"),
        Ok(false) => {}
        Err(error) => tracing::warn!(task = %key, %run, %error, ?processes, "unkillable_not_noted"),
    }
}

/// Processes left by a run without a shim, across several looks.
#[derive(Debug)]
pub(super) struct Leftover {
    stuck: Stuck<i32>,
    /// True if this daemon or an earlier one found them stuck.
    is_unkillable: bool,
    noted: Vec<Straggler>,
}

impl Leftover {
    /// Makes the state before the first check.
    pub(super) fn before_checks(board: &BoardHandle, run: RunId) -> Self {
        let is_unkillable = board.readers().with(|view| view.is_unkillable(run)).unwrap_or(false);
        Leftover { stuck: Stuck::default(), is_unkillable, noted: Vec::new() }
    }

    /// Adds the result of a check: processes that SIGKILL was sent to. Returns the report of the delay.
    pub(super) async fn checked(
        &mut self,
        board: &BoardHandle,
        key: &TaskKey,
        run: RunId,
        left: Vec<Straggler>,
    ) -> Report {
        self.is_unkillable |= self.stuck.check(boottime_us(), left.iter().map(|one| one.pid).collect());
        if !self.is_unkillable {
            let count = Counted(left.len() as u64, "process");
            return Report::Delayed(
                Phase::Settling,
                format!("SIGKILL was sent to {count}; not all have ended"),
            );
        }
        if self.noted != left {
            note(board, key, run, &left).await;
        }
        let more = left.len().saturating_sub(UnkillableRecord::NAMED);
        let why = in_words(&left[..left.len() - more], more);
        self.noted = left;
        Report::Delayed(Phase::Unkillable, why)
    }
}

/// Describes unkillable processes, and the number of further ones.
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
