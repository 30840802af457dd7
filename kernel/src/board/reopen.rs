//! Reopens finished tasks into the queue, and returns archived tasks to their former states.
//!
//! Children that have already used the result of a reopened task are not undone: a person decides about each. The
//! result stays until the next completion, because an empty column would look as if there had been none. A task must
//! not pass a gate by way of the archive, so the `archived` event stores the state to return to; a task whose event
//! is folded waits for a person.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Board, Record};
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::filter::EventFilter;
use crate::model::id::TaskId;
use crate::model::outcome::BlockKind;
use crate::model::state::{Change, Gate, State, Then};
use crate::model::status::{Status, WasDone};
use crate::model::task::Task;
use crate::model::verdict::{Blocking, Question};
use crate::rules::recurrence::Recurrence;
use crate::store::fields::Field;
use crate::store::tasks::StateRow;

/// Result of reopening a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Reopened {
    /// The task after the step.
    pub task: Task,
    /// Children that have already started. They go on with the earlier result.
    pub begun: Vec<TaskId>,
}

/// State of an unfinished task before it was archived, as its event stores it.
#[derive(Debug, Deserialize)]
struct Former {
    from: State,
    reason: Option<String>,
    question: Option<Question>,
    #[serde(default)]
    cancelled: bool,
    work_by: Option<String>,
}

impl Board<'_> {
    /// Puts a finished task back into the queue. Its result, files and attempts stay. Children that have not started wait
    /// again, and started children go on. A comment keeps the reason for the next worker.
    pub fn reopen(&mut self, id: &TaskId, reason: Option<&str>, actor: &Actor) -> Result<Reopened, Error> {
        let task = self.for_person(id, actor, "reopen a task")?;
        let from = self.state_row(id)?;
        let trial = Change::Reopened { gate: Gate::Open };
        super::legal(id, from.state, trial)?;
        let label = actor.label();
        self.leave_archived_parents(&task, &label)?;
        let mut started = self.children(id)?;
        started.retain(|child| {
            let status = self.task(child).ok().flatten().map(|child| child.status);
            matches!(status, Some(Status::Running | Status::Review | Status::Done))
        });
        let change = Change::Reopened { gate: self.gate(id, from.not_before)? };
        let payload = json!({ "reason": reason, "begun": started });
        self.shift(id, &from, change, Record::new(EventKind::Reopened, payload, &label))?;
        self.forget_failures(id)?;
        self.set_blocks(id, Recurrence::default())?;
        self.reevaluate_children(id, &label)?;
        self.keep_reason(id, "REOPENED", reason, actor)?;
        Ok(Reopened { task: self.expect_task(id)?, begun: started })
    }

    /// Brings a task back from the archive: a finished task as done, any other task to its former state. A task that was
    /// running waits for another run. A task whose former state is no longer in the log waits for a person.
    pub fn unarchive(&mut self, id: &TaskId, actor: &Actor) -> Result<Task, Error> {
        let task = self.for_person(id, actor, "unarchive a task")?;
        let from = self.state_row(id)?;
        let label = actor.label();
        self.leave_archived_parents(&task, &label)?;
        let former = self.former_state(&from, id)?;
        let (then, blocking) = if from.state == (State::Archived { finished: WasDone::No }) {
            self.former_destination(id, &from, former.as_ref())?
        } else {
            (Then::Done, None)
        };
        let change = Change::Unarchived { then };
        let to = super::legal(id, from.state, change)?;
        let record = Record::new(EventKind::Unarchived, json!({ "status": to.status() }), &label)
            .blocking(blocking.as_ref());
        // This comes before the move, because the move clears the author unless the new state has a use for it.
        if let Some(author) = former.and_then(|former| former.work_by) {
            self.set(id, &Field::WorkBy(&author))?;
        }
        self.shift(id, &from, change, record)?;
        self.expect_task(id)
    }

    /// Returns the former state for the event of an archived task.
    pub(super) fn archived_from(task: &Task, from: &StateRow) -> Value {
        let mut payload = json!({
            "from": from.state, "reason": task.block_reason, "question": task.question, "work_by": task.work_by,
        });
        if task.cancelled {
            payload["cancelled"] = true.into();
        }
        payload
    }

    /// Unlinks parents that were archived unfinished, because they will never be done.
    pub(super) fn leave_archived_parents(&self, task: &Task, label: &str) -> Result<(), Error> {
        for parent in self.open_parents(&task.id)? {
            if self.expect_task(&parent)?.status == Status::Archived {
                self.drop_link(&parent, task, "parent_archived", label)?;
            }
        }
        Ok(())
    }

    /// Returns the former state of an archived task; none for a finished task, and for a task whose event was folded.
    fn former_state(&self, from: &StateRow, id: &TaskId) -> Result<Option<Former>, Error> {
        if !matches!(from.state, State::Archived { finished: WasDone::No }) {
            return Ok(None);
        }
        let last = EventFilter {
            task: Some(id.clone()),
            kinds: vec![EventKind::Archived.as_str().to_owned()],
            limit: 1,
            newest_first: true,
            ..EventFilter::default()
        };
        let event = self.events(&last)?.pop();
        let Some(event) = event else { return Ok(None) };
        // A run's end archived the task, so it had been running.
        if let Some(run) = event.run_id {
            return Ok(Some(Former {
                from: State::Running { run, verdict: None },
                reason: None,
                question: None,
                cancelled: false,
                work_by: None,
            }));
        }
        Ok(event.payload.and_then(|payload| serde_json::from_value(payload).ok()))
    }

    /// Returns the destination of an unfinished task, by its former state.
    fn former_destination(
        &self,
        id: &TaskId,
        state_row: &StateRow,
        former: Option<&Former>,
    ) -> Result<(Then, Option<Blocking>), Error> {
        let blocked = |blocking: Blocking| (Then::Blocked(blocking.kind), Some(blocking));
        let Some(former) = former else {
            let reason = "it was archived unfinished, and the log no longer tells its state";
            return Ok(blocked(Blocking { reason: Some(reason.to_owned()), ..Blocking::default() }));
        };
        if former.from == State::Triage {
            return Ok((Then::Triage, None));
        }
        if former.from == State::Review && former.work_by.is_some() {
            return Ok((Then::Review, None));
        }
        if let State::Blocked { kind } = former.from
            && kind != BlockKind::Approval
        {
            let Former { reason, question, cancelled, .. } = former;
            let (reason, question) = (reason.clone(), question.clone());
            return Ok(blocked(Blocking { kind, reason, question, is_cancel: *cancelled }));
        }
        Ok((Then::Again(self.gate(id, state_row.not_before)?), None))
    }
}
