//! How work came out, as an exit code: that of a run, and that of a task which does not go on by itself.

use kernel::{BlockKind, Outcome, Run, Status};

use crate::exit::Code;
use crate::verbs::Shown;

/// A task that waits for a person.
pub(super) const NEEDS_A_PERSON: u8 = 5;
/// A run that took too long, as timeout(1) has it.
const TIMED_OUT: u8 = 124;
/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// The exit code of a run that has ended: 0 for work that was handed over, else that of its command.
pub(super) fn of_run(run: &Run) -> u8 {
    match run.outcome {
        Some(
            Outcome::Completed
            | Outcome::Approved
            | Outcome::ChangesRequested
            | Outcome::ReviewRequested
            | Outcome::CheckPassed,
        ) => 0,
        Some(Outcome::Blocked) => NEEDS_A_PERSON,
        Some(Outcome::TimedOut) => TIMED_OUT,
        Some(_) | None => of_command(run),
    }
}

fn of_command(run: &Run) -> u8 {
    let by_signal = run.signal.map(|signal| BY_SIGNAL + signal);
    let code = by_signal.or(run.exit_code).and_then(|code| u8::try_from(code).ok());
    code.filter(|code| *code != 0).unwrap_or_else(|| Code::Failed.exit())
}

/// The exit code of a task that goes on only if a person does something; none while it goes on by itself.
pub(super) fn of_task(shown: &Shown) -> Option<u8> {
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
