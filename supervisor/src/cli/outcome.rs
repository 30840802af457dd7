//! Exit codes of commands that wait, for the outcome of a run or of a task that no longer continues by itself.
//!
//! See decision 0119.

use kernel::{BlockKind, Outcome, Run, Status};

use base::exit::{BY_SIGNAL, Code, NEEDS_A_PERSON, TIMED_OUT};
use verbs::ShownTask;

/// Returns the exit code of a command that followed a run to its end. It is the task's exit code, as in `wait`, if this
/// is the last run and the task does not continue by itself; else it is the run's.
pub(super) fn after_run(shown: &ShownTask, run: &Run) -> u8 {
    let is_last = shown.runs.last().is_none_or(|last| last.id == run.id);
    of_task(shown).filter(|_| is_last).unwrap_or_else(|| of_run(run))
}

/// Returns the exit code of an ended run: 0 if it handed over its work, else the code of its command.
fn of_run(run: &Run) -> u8 {
    match run.outcome {
        Some(
            Outcome::Completed
            | Outcome::Approved
            | Outcome::ChangesRequested
            | Outcome::ReviewRequested
            | Outcome::CheckPassed,
        ) => 0,
        // The task waits for a person now. A signal that ended its worker does not matter.
        Some(Outcome::Blocked | Outcome::Cancelled) => NEEDS_A_PERSON,
        Some(Outcome::TimedOut) => TIMED_OUT,
        Some(_) | None => of_command(run),
    }
}

fn of_command(run: &Run) -> u8 {
    let by_signal = run.signal.map(|signal| BY_SIGNAL + signal);
    let code = by_signal.or(run.exit_code).and_then(|code| u8::try_from(code).ok());
    code.filter(|code| *code != 0).unwrap_or_else(|| Code::Failed.exit())
}

/// Returns the exit code of a task that continues only if a person acts; none while it continues by itself.
pub(super) fn of_task(shown: &ShownTask) -> Option<u8> {
    let task = &shown.task;
    let failed = || shown.runs.last().map_or_else(|| Code::Failed.exit(), of_run);
    match task.status {
        Status::Done => Some(0),
        Status::Archived if task.is_done() => Some(0),
        Status::Archived => Some(Code::Failed.exit()),
        Status::Blocked if task.block_kind == Some(BlockKind::GaveUp) => Some(failed()),
        Status::Blocked
        | Status::Triage
        | Status::Review
        | Status::Todo
        | Status::Scheduled
        | Status::Ready
        | Status::Running => task.waits_for_a_person().then_some(NEEDS_A_PERSON),
    }
}
