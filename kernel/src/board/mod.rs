//! Writes of a board: applies the rules, and records each change with its event in the same transaction.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::board::view::View;
use crate::model::actor::{Actor, WorkerRole};
use crate::model::clock::{Clock, Timestamp};
use crate::model::entropy::Entropy;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{RunId, TaskId};
use crate::model::missing::Missing;
use crate::model::outcome::BlockKind;
use crate::model::quota::Quotas;
use crate::model::state::{Change, State};
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::verdict::Blocking;
use crate::rules::authority;
use crate::rules::notice;
use crate::rules::recurrence::Recurrence;
use crate::rules::transition::{in_queue, next};
use crate::store::events::NewEvent;
use crate::store::fields::Field;
use crate::store::tasks::StateRow;
use crate::store::tx::Tx;

mod answer;
mod approval;
mod archive;
mod attach;
mod breaker;
mod budget;
mod charge;
mod chat;
mod check;
mod claim;
mod clock_set;
mod consult;
mod context;
mod create;
mod created_tasks;
mod diagnose;
mod edit;
mod end;
mod finish;
mod fleet;
pub(crate) mod fold;
mod fork;
mod hold;
mod import;
mod link;
mod mention;
mod message;
mod mission;
mod mission_control;
mod mission_view;
mod note;
mod notify;
mod offer;
mod outbox;
mod plugins;
mod progress;
mod proposal;
mod release;
mod reopen;
pub(crate) mod replay;
mod retry_cancel;
mod review;
mod savepoint;
mod schedules;
mod start;
mod swarm;
mod tenants;
mod terminal;
mod timers;
mod tool_call;
mod verdict;
pub(crate) mod view;
pub(crate) mod visibility;
mod waiting;

pub use answer::Answered;
pub use archive::Detach;
pub use claim::{ClaimTerms, Claimed, OpenClaim};
pub use create::Created;
pub use edit::{Edit, PoolChange};
pub use end::{Handed, LostArtifact};
pub use fleet::FLEET_BATCH;
pub use fork::{Fork, ForkedFrom};
pub use mission_control::{MissionEnds, Pause};
pub use release::Force;
pub use reopen::Reopened;
pub use start::{Placement, Start};
pub use verdict::{Effect, Settled};

/// Writes of one transaction. Its reads see its earlier writes.
pub struct Board<'a> {
    view: View<'a>,
    entropy: &'a dyn Entropy,
    quotas: Arc<Quotas>,
}

impl fmt::Debug for Board<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").finish_non_exhaustive()
    }
}

impl<'a> Deref for Board<'a> {
    type Target = View<'a>;

    fn deref(&self) -> &View<'a> {
        &self.view
    }
}

/// Label of the supervisor in events.
const SYSTEM: &str = "system:supervisor";

/// Event of a transition, with the block that the transition makes.
struct Record<'a> {
    kind: EventKind,
    payload: Option<Value>,
    run: Option<RunId>,
    blocking: Option<&'a Blocking>,
    actor: &'a str,
}

impl<'a> Record<'a> {
    fn new(kind: EventKind, payload: impl Into<Option<Value>>, actor: &'a str) -> Self {
        Self { kind, payload: payload.into(), run: None, blocking: None, actor }
    }

    /// Sets the run of the event.
    fn in_run(self, run: impl Into<Option<RunId>>) -> Self {
        Self { run: run.into(), ..self }
    }

    /// Sets the block.
    fn blocking(self, blocking: impl Into<Option<&'a Blocking>>) -> Self {
        Self { blocking: blocking.into(), ..self }
    }
}

impl<'a> Board<'a> {
    pub(crate) fn new(
        tx: &'a Tx<'a>,
        clock: &'a dyn Clock,
        entropy: &'a dyn Entropy,
        quotas: Arc<Quotas>,
    ) -> Self {
        Self { view: View { tx, clock }, entropy, quotas }
    }

    fn state_row(&self, id: &TaskId) -> Result<StateRow, Error> {
        self.tx.state_row(id)?.ok_or_else(|| Error::missing(Missing::Task, id))
    }

    /// Returns a task and its state row, in one read.
    fn task_with_state(&self, id: &TaskId) -> Result<(Task, StateRow), Error> {
        self.tx.find_task_with_state(id)?.ok_or_else(|| Error::missing(Missing::Task, id))
    }

    /// Returns a task to a person who may see it. `what` is the forbidden act, for the refusal of a worker.
    fn for_person(&self, id: &TaskId, actor: &Actor, what: &str) -> Result<Task, Error> {
        authority::person(actor, what)?;
        self.task_for(id, actor)
    }

    /// Returns a task to a caller who may direct it. `what` is the forbidden act, for the refusal of another worker.
    fn for_director(&self, id: &TaskId, actor: &Actor, what: &str) -> Result<Task, Error> {
        if actor.role == WorkerRole::Worker {
            authority::person(actor, what)?;
        }
        let task = self.task_for(id, actor)?;
        authority::may_direct(actor, &task, what)?;
        Ok(task)
    }

    /// Moves a task and appends the event of the move. All changes of status go through this function.
    fn shift(
        &self,
        id: &TaskId,
        from: &StateRow,
        change: Change,
        record: Record<'_>,
    ) -> Result<State, Error> {
        let to = legal(id, from.state, change)?;
        let now = self.now();
        // The row changes only if it still has the state that was read as `from`.
        if !self.tx.set_task_state(id, from.state, to, record.blocking, now)? {
            return Err(Error::conflict(
                format!("{id} has changed meanwhile"),
                "nothing was done; try again",
            ));
        }
        self.tx.note_move(id, now)?;
        let error_text = record.payload.as_ref().and_then(notice::error);
        let event = self.tx.append_event(&NewEvent {
            task: Some(id),
            run: record.run,
            tenant: from.tenant.as_ref(),
            kind: record.kind,
            payload: record.payload,
            change: Some(change),
            actor: record.actor,
            now,
        })?;
        // The holds on a finished task serve nothing. A task that is to be done again may meet a used-up limit of its
        // mission.
        let is_cancelled = record.blocking.is_some_and(|blocking| blocking.is_cancel);
        if is_cancelled || matches!(to, State::Done | State::Archived { .. }) {
            self.end_holds_of(id)?;
        } else if matches!(from.state, State::Done | State::Archived { .. } | State::Blocked { .. }) {
            self.pause_again(id)?;
        }
        let question = record.blocking.and_then(|blocking| blocking.question.as_ref());
        // A request for an approval has an event of its own, which is the only message about it.
        let is_told_by_request = question.is_some_and(|question| question.approval.is_some());
        let waits = to == (State::Blocked { kind: BlockKind::Approval });
        if waits && record.blocking.is_none() {
            self.ask_for_approval(id, record.actor)?;
        } else if !(waits && is_told_by_request) {
            self.tell_subscribers(id, event, record.kind, Some(to), error_text.as_deref())?;
        }
        Ok(to)
    }

    /// Removes a link for a reason other than a caller's request, and records the reason.
    fn drop_link(&self, parent: &TaskId, child: &Task, reason: &str, label: &str) -> Result<(), Error> {
        self.tx.delete_link(parent, &child.id)?;
        let payload = json!({ "parent": parent, "child": child.id, "reason": reason });
        self.append(child, None, EventKind::Unlinked, payload, label)
    }

    /// Appends an event that is no transition.
    fn append(
        &self,
        task: &Task,
        run: Option<RunId>,
        kind: EventKind,
        payload: impl Into<Option<Value>>,
        actor: &str,
    ) -> Result<(), Error> {
        let (now, payload) = (self.now(), payload.into());
        let tenant = task.tenant.as_ref();
        let event = NewEvent { task: Some(&task.id), run, tenant, kind, payload, change: None, actor, now };
        let event = self.tx.append_event(&event)?;
        self.tell_subscribers(&task.id, event, kind, None, None)
    }

    fn set(&self, id: &TaskId, field: &Field<'_>) -> Result<(), Error> {
        self.tx.set_task_field(id, field, self.now())
    }

    /// Stores the number of consecutive blocks of a task.
    fn set_blocks(&self, id: &TaskId, blocks: Recurrence) -> Result<(), Error> {
        self.tx.set_recurrence(id, blocks.kind, blocks.count, self.now())
    }

    /// Lets the children of a task go on, or wait again, after the task was done or reopened.
    fn reevaluate_children(&self, parent: &TaskId, actor: &str) -> Result<(), Error> {
        for child in self.tx.children(parent)? {
            self.reevaluate(&child, actor)?;
        }
        Ok(())
    }

    /// Moves a task in the queue to the status that its parents and its time require.
    fn reevaluate(&self, id: &TaskId, actor: &str) -> Result<(), Error> {
        let from = self.state_row(id)?;
        if !in_queue(from.state) {
            return Ok(());
        }
        let change = Change::Reevaluated { gate: self.gate(id, from.not_before)? };
        let to = legal(id, from.state, change)?;
        if to == from.state {
            return Ok(());
        }
        let (kind, payload) = match to.status() {
            Status::Ready => (EventKind::Promoted, None),
            Status::Scheduled => (EventKind::Scheduled, None),
            Status::Blocked => {
                let reason = self.approval_reason(&self.expect_task(id)?);
                (EventKind::Blocked, Some(json!({ "kind": BlockKind::Approval, "reason": reason })))
            }
            Status::Todo
            | Status::Triage
            | Status::Running
            | Status::Review
            | Status::Done
            | Status::Archived => {
                (EventKind::Status, Some(json!({ "status": to.status(), "reason": "parents_not_done" })))
            }
        };
        self.shift(id, &from, change, Record::new(kind, payload, actor)).map(|_| ())
    }
}

impl StateRow {
    /// Returns the consecutive blocks of the task.
    fn blocks(&self) -> Recurrence {
        Recurrence { kind: self.last_block_kind, count: self.block_recurrences }
    }
}

/// Returns the state after a change; refuses a change that the state machine does not have.
fn legal(id: &TaskId, from: State, change: Change) -> Result<State, Error> {
    next(Some(from), change).map_err(|_| illegal(id, from, change))
}

/// Returns the refusal for a task without an open run.
fn no_open_run(task: &Task, hint: impl Into<String>) -> Error {
    Error::conflict(format!("{} has no open run: its status is {}", task.id, task.status), hint)
}

fn illegal(id: &TaskId, from: State, change: Change) -> Error {
    let block = if let State::Blocked { kind } = from { Some(kind) } else { None };
    let status = from.status();
    let goes_on_by_retry = status == Status::Blocked && block != Some(BlockKind::Approval);
    let hint = if matches!(change, Change::Unarchived { .. }) {
        format!("it is on the board: `supervisor show {id}` says what leads on")
    } else if goes_on_by_retry && matches!(change, Change::Reopened { .. }) {
        format!("it is not done; try it again: `supervisor retry {id}`")
    } else {
        way_on(id, status, block)
    };
    Error::Illegal { task: id.clone(), status, change: change.verb(), hint: Some(hint) }
}

/// Returns the hint for a refusal: the command that leads on from a status.
fn way_on(id: &TaskId, status: Status, block: Option<BlockKind>) -> String {
    match status {
        Status::Blocked if block == Some(BlockKind::Approval) => {
            format!(
                "it waits for an approval: `supervisor approve {id}` or `supervisor deny {id} --reason '…'`"
            )
        }
        Status::Running => {
            format!("it is running; reclaim it, or wait for its run to end: `supervisor show {id}`")
        }
        Status::Archived => format!("it is archived; bring it back: `supervisor unarchive {id}`"),
        Status::Done => format!(
            "it is done; put it back into the queue with `supervisor reopen {id}`, or create a task that goes on from it: \
             `supervisor create '…' --parent {id}`"
        ),
        Status::Blocked => format!("unblock it first: `supervisor unblock {id}`"),
        Status::Triage => format!("promote it first: `supervisor promote {id}`"),
        Status::Todo => format!("its parents are not done: `supervisor show {id}`"),
        Status::Scheduled => format!("its time has not come: `supervisor show {id}`"),
        Status::Ready => format!("it is ready to start; `supervisor show {id}` says what it waits for"),
        Status::Review => {
            format!("it is in review: `supervisor approve {id}`, or `supervisor request-changes {id} '…'`")
        }
    }
}

/// Shortens a text for the payload of an event.
fn preview(text: Option<&str>) -> Option<String> {
    text.map(|text| text.chars().take(400).collect())
}

/// Returns the seconds from `now` to `at`, for messages.
fn seconds_until(now: Timestamp, at: Timestamp) -> u64 {
    at.since(now).as_secs()
}

fn completed_payload(handoff: Option<&crate::model::verdict::Handoff>) -> Value {
    handoff.map_or(Value::Null, verdict::completed)
}

#[cfg(test)]
mod admission_tests;
#[cfg(test)]
mod approval_class_tests;
#[cfg(test)]
mod approval_tests;
#[cfg(test)]
mod authority_tests;
#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod charge_tests;
#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod consult_tests;
#[cfg(test)]
mod context_tests;
#[cfg(test)]
mod delete_tests;
#[cfg(test)]
mod dependency_tests;
#[cfg(test)]
mod diagnose_tests;
#[cfg(test)]
mod ending_tests;
#[cfg(test)]
mod event_keys_tests;
#[cfg(test)]
pub(crate) mod event_snapshots;
#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod fold_tests;
#[cfg(test)]
mod goal_tests;
#[cfg(test)]
pub(crate) mod history_tests;
#[cfg(test)]
mod hold_tests;
#[cfg(test)]
mod mention_tests;
#[cfg(test)]
mod mission_control_tests;
#[cfg(test)]
mod mission_question_tests;
#[cfg(test)]
mod mission_tests;
#[cfg(test)]
mod outbox_tests;
#[cfg(test)]
mod plugins_tests;
#[cfg(test)]
mod progress_tests;
#[cfg(test)]
mod proposal_tests;
#[cfg(test)]
mod reopen_tests;
#[cfg(test)]
mod reply_limit_tests;
#[cfg(test)]
mod retry_cancel_tests;
#[cfg(test)]
mod review_tests;
#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod schedules_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tries_tests;
#[cfg(test)]
mod uncommitted_tests;
