//! The verbs `retry` and `cancel`: a person starts a task once more, or ends its work.
//!
//! A column says that a task is cancelled. The text of the reason is for people: workers write reasons as well.

use super::verdict::Settled;
use super::{Board, Reopened};
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::outcome::{BlockKind, StopReason};
use crate::model::state::{Change, State};
use crate::model::status::Status;
use crate::model::verdict::{Blocking, cancelled_by};
use crate::rules::recurrence::Recurrence;

impl Board<'_> {
    /// Puts a task back into the queue: a task that gave up, was cancelled, is blocked or done, or waits for its next
    /// try. Its counts of failures and blocks are reset. A comment keeps the reason for the next worker.
    pub fn retry(&mut self, id: &TaskId, reason: Option<&str>, actor: &Actor) -> Result<Reopened, Error> {
        let task = self.for_person(id, actor, "retry a task")?;
        if let (Some(question), None) = (task.open_question(), reason) {
            return Err(Error::conflict(
                format!("{id} has an open question: {}", question.text.trim_end()),
                format!(
                    "answer it: `{}`; `supervisor unblock {id}` lets it go on without an answer",
                    question.command(id)
                ),
            ));
        }
        let from = self.state_row(id)?.state;
        if from == State::Done {
            return self.reopen(id, reason, actor);
        }
        let task = self.unblock(id, reason, actor).map_err(|error| for_change(error, "retry"))?;
        self.set_blocks(id, Recurrence::default())?;
        Ok(Reopened { task, begun: Vec::new() })
    }

    /// Ends the run of a task, or its wait for a run. The task is then blocked until a person retries or archives it. A
    /// comment keeps the reason.
    pub fn cancel(&mut self, id: &TaskId, reason: Option<&str>, actor: &Actor) -> Result<Settled, Error> {
        let task = self.for_person(id, actor, "cancel a task")?;
        let Some(run) = task.current_run_id else {
            let change = Change::Blocked { kind: BlockKind::NeedsInput };
            super::legal(id, self.state_row(id)?.state, change).map_err(not_cancelled)?;
            let reason = Some(cancelled_by(&actor.name, reason));
            let blocking = Blocking { reason, is_cancel: true, ..Blocking::default() };
            return self.block(id, blocking, None, actor);
        };
        if let Some(verdict) = self.expect_run(run)?.verdict {
            return Err(Error::conflict(
                format!("run {run} of {id} has its verdict already ({}) and is ending", verdict.kind()),
                format!("wait for it: `supervisor wait {id}`"),
            ));
        }
        self.keep_reason(id, "CANCELLED", reason, actor)?;
        self.stop_run(run, StopReason::Cancelled, reason, actor)
    }
}

/// Returns the refusal to cancel a task that does not run.
fn not_cancelled(error: Error) -> Error {
    let error = for_change(error, "cancel");
    let Error::Illegal { task, status: status @ (Status::Blocked | Status::Triage), change, .. } = error
    else {
        return error;
    };
    let hint = Some(format!("it does not run; `supervisor archive {task}` takes it off the board"));
    Error::Illegal { task, status, change, hint }
}

/// Returns the same refusal with the name of the requested change.
fn for_change(error: Error, change: &'static str) -> Error {
    if let Error::Illegal { task, status, hint, .. } = error {
        Error::Illegal { task, status, change, hint }
    } else {
        error
    }
}
