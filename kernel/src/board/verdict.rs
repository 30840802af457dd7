//! Verdicts: complete, block, request review, and the decisions of people about a task.
//!
//! A verdict is recorded at once, and takes effect when the open run has ended, so that no other run of the task
//! starts while the worker still works.

use serde_json::json;

use super::{Board, Record, preview};
use crate::model::actor::{Actor, ActorKind};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{RunId, TaskId};
use crate::model::limits;
use crate::model::outcome::{BlockKind, Finished, Outcome, StopReason};
use crate::model::run::{Holder, Purpose};
use crate::model::state::{Change, Gate, State};
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::verdict::{Blocking, Handoff, Verdict};
use crate::model::words::words;
use crate::rules::artifact;
use crate::rules::authority;
use crate::rules::recurrence::{Limited, Recurrence};
use crate::rules::transition::in_queue;
use crate::store::fields::Field;
use crate::store::runs::{Close, NewRun};
use crate::store::tasks::StateRow;

words! {
    /// Time at which a decision takes effect.
    "effect"
    Effect {
        /// The decision has taken effect.
        Now => "now",
        /// The decision takes effect when the open run has ended.
        WhenRunEnds => "when_run_ends",
    }
}

/// Result of a decision about a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The task in its current state.
    pub task: Task,
    /// Run that carries the decision; none when no run was needed.
    pub run: Option<RunId>,
    /// Time at which the decision takes effect.
    pub effect: Effect,
}

impl Board<'_> {
    /// Decides that a task is done. The decision is durable when the call returns. The status changes when the open run
    /// has ended, or at once if there is none.
    pub fn complete(
        &mut self,
        id: &TaskId,
        handoff: Handoff,
        expected_run: Option<RunId>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        handoff.within_limits()?;
        self.require_made(&handoff, actor)?;
        self.decide(id, Verdict::Complete(handoff), expected_run, actor)
    }

    /// Decides that a task cannot go on. The reason is also kept as a comment, unless the block asks a question. After a
    /// worker's block for a dependency, its task waits for the unfinished tasks that its runs have created.
    pub fn block(
        &mut self,
        id: &TaskId,
        mut blocking: Blocking,
        expected_run: Option<RunId>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        limits::maybe("reason", blocking.reason.as_deref(), limits::SUMMARY)?;
        if let Some(question) = &blocking.question {
            super::answer::validate(question, blocking.kind)?;
            blocking.reason = blocking.reason.or_else(|| Some(question.text.clone()));
        }
        if !BlockKind::TOLD.contains(&blocking.kind) {
            let kinds = BlockKind::TOLD.map(BlockKind::as_str).join(", ");
            return Err(Error::invalid(
                "kind",
                format!("{} is the supervisor's own", blocking.kind),
                format!("use one of {kinds}"),
            ));
        }
        if blocking.question.is_none() {
            // The comment is written before the verdict, because the verdict may end the run that is its author.
            self.keep_reason(id, "BLOCKED", blocking.reason.as_deref(), actor)?;
        }
        if blocking.kind == BlockKind::Dependency && actor.kind == ActorKind::Worker {
            let task = self.task_for(id, actor)?;
            authority::own_task(actor, id, task.current_run_id)?;
            // A reviewer's verdict is about existing work, so it waits for no new tasks.
            if task.work_by.is_none() {
                self.wait_for_created_tasks(&task, &actor.label())?;
            }
        }
        self.decide(id, Verdict::Block(blocking), expected_run, actor)
    }

    /// Records a decision about a task: on its open run, or at once if it has none.
    pub(super) fn decide(
        &mut self,
        id: &TaskId,
        verdict: Verdict,
        expected_run: Option<RunId>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let task = self.task_for(id, actor)?;
        authority::own_task(actor, id, task.current_run_id)?;
        let expected = expected_run.or(actor.run.as_ref().map(|own| own.run));
        expected.map_or(Ok(()), |expected| require_run(&task, expected))?;
        self.check_purpose(&task, &verdict, actor)?;
        self.check_proposal_verdict(id, &verdict, actor)?;
        let state_row = self.state_row(id)?;
        if let State::Running { run, verdict: before } = state_row.state {
            return self.record(&task, &state_row, run, before.is_some(), verdict, actor);
        }
        self.decide_unclaimed(&task, &state_row, verdict, actor)
    }

    /// Records a verdict on an open run, and asks for the end of the run.
    fn record(
        &mut self,
        task: &Task,
        state_row: &StateRow,
        run: RunId,
        decided: bool,
        verdict: Verdict,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let open = self.expect_run(run)?;
        let verdict = match open.holder {
            Holder::Supervisor => artifact::placed(verdict, open.workspace_path.as_deref())?,
            // The directory of an external worker's files is not known here.
            Holder::External => verdict,
        };
        let mut author = actor.label();
        let verdict = match (verdict, open.verdict.clone()) {
            (Verdict::Archive { .. }, Some(Verdict::Complete(handoff))) => {
                // The recorded handoff is kept, so its author stays the author of the verdict.
                author = self.tx.verdict_by(run)?.unwrap_or(author);
                Verdict::Archive { handoff: Some(handoff) }
            }
            (verdict, _) => verdict,
        };
        let change = Change::Recorded { run, verdict: verdict.kind() };
        // Only archiving may follow an earlier verdict.
        if decided && crate::rules::transition::next(Some(state_row.state), change).is_err() {
            let before = open.verdict.as_ref().map_or("", |verdict| verdict.kind().as_str());
            return Err(Error::conflict(
                format!("run {run} of {} has its verdict already ({before}) and is ending", task.id),
                "wait for it to end, then decide again",
            ));
        }
        let stop = match actor.kind {
            // An earlier request to stop the run is kept, because it may be more urgent.
            ActorKind::Worker => open.stop_reason.unwrap_or(StopReason::Verdict),
            ActorKind::Person | ActorKind::System => StopReason::Cancelled,
        };
        let label = actor.label();
        let payload = json!({ "verdict": verdict.kind(), "by": actor.name, "reason": reason(&verdict) });
        let record = Record::new(EventKind::Verdict, payload, &label).in_run(run);
        self.shift(&task.id, state_row, change, record)?;
        if !self.tx.record_verdict(run, &verdict, &author, stop, self.now())? {
            return Err(Error::conflict(format!("run {run} has ended"), "nothing was done"));
        }
        let effect = self.end_if_external(&open, stop)?;
        Ok(Settled { task: self.expect_task(&task.id)?, run: Some(run), effect })
    }

    /// Decides about a task without an open run; workers may not. A completion or a block is kept by a run of zero
    /// length.
    fn decide_unclaimed(
        &mut self,
        task: &Task,
        state_row: &StateRow,
        verdict: Verdict,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        authority::person(actor, "decide about a task without a run")?;
        let label = actor.label();
        match verdict {
            // The run of zero length is inserted before the move, because the event of the move names the run.
            Verdict::Complete(handoff) => {
                let run = self.zero_length(task, Outcome::Completed, Status::Done, Some(&handoff), None)?;
                self.forget_failures(&task.id)?;
                self.set_blocks(&task.id, Recurrence::default())?;
                self.keep_handoff(&task.id, &handoff)?;
                let record = Record::new(EventKind::Completed, completed(&handoff), &label).in_run(run);
                self.shift(&task.id, state_row, Change::Completed, record)?;
                self.reevaluate_children(&task.id, &label)?;
                self.settled(&task.id, Some(run))
            }
            Verdict::Block(blocking) => self.block_unclaimed(task, state_row, &blocking, &label),
            Verdict::RequestReview(request) => self.review_unclaimed(task, state_row, &request, &label),
            Verdict::Approve => self.approve_unclaimed(task, state_row, &label),
            Verdict::RequestChanges { reason } => {
                let change = Change::ChangesRequested { gate: self.gate(&task.id, None)? };
                let payload = json!({ "reason": preview(Some(&reason)) });
                self.shift(
                    &task.id,
                    state_row,
                    change,
                    Record::new(EventKind::ChangesRequested, payload, &label),
                )?;
                self.forget_failures(&task.id)?;
                self.settled(&task.id, None)
            }
            Verdict::Archive { .. } => {
                // The event keeps the former state, from which `unarchive` restores the task.
                let former_state = Some(Self::archived_from(task, state_row));
                self.shift(
                    &task.id,
                    state_row,
                    Change::Archived,
                    Record::new(EventKind::Archived, former_state, &label),
                )?;
                self.settled(&task.id, None)
            }
            Verdict::Move { to } => {
                self.move_unclaimed(&task.id, state_row, to, &label)?;
                self.settled(&task.id, None)
            }
        }
    }

    /// Blocks a task without an open run; a task that was blocked too often goes to triage instead.
    fn block_unclaimed(
        &mut self,
        task: &Task,
        state_row: &StateRow,
        blocking: &Blocking,
        label: &str,
    ) -> Result<Settled, Error> {
        let kind = blocking.kind;
        let change = Change::Blocked { kind };
        super::legal(&task.id, state_row.state, change)?;
        let blocks = state_row.blocks().with(kind);
        let limited = blocks.is_loop() && state_row.state != State::Triage;
        let (status, change, event, limited) = if limited {
            (Status::Triage, Change::SentToTriage, EventKind::BlockLoopDetected, Limited::Yes)
        } else {
            (Status::Blocked, change, EventKind::Blocked, Limited::No)
        };
        let payload = blocks.payload(blocking, limited);
        let error = blocking.reason.as_deref();
        if kind == BlockKind::Dependency
            && in_queue(state_row.state)
            && !self.open_parents(&task.id)?.is_empty()
        {
            // The task already waits, and goes on when its parents are done.
            let run = self.zero_length(task, Outcome::Blocked, Status::Todo, None, error)?;
            let record = Record::new(EventKind::DependencyWait, payload, label).in_run(run);
            self.shift(&task.id, state_row, Change::Reevaluated { gate: Gate::Parents }, record)?;
            return self.settled(&task.id, Some(run));
        }
        let run = self.zero_length(task, Outcome::Blocked, status, None, error)?;
        self.set_blocks(&task.id, if limited == Limited::Yes { blocks.in_triage() } else { blocks })?;
        let record = Record::new(event, payload, label).in_run(run).blocking(blocking);
        self.shift(&task.id, state_row, change, record)?;
        self.settled(&task.id, Some(run))
    }

    pub(super) fn settled(&self, id: &TaskId, run: Option<RunId>) -> Result<Settled, Error> {
        Ok(Settled { task: self.expect_task(id)?, run, effect: Effect::Now })
    }

    /// Inserts a run that ends at its start time, which carries a decision about a task without an open run.
    pub(super) fn zero_length(
        &self,
        task: &Task,
        outcome: Outcome,
        status: Status,
        handoff: Option<&Handoff>,
        error: Option<&str>,
    ) -> Result<RunId, Error> {
        let now = self.now();
        let boot = self.clock.boot_id();
        let run = self.tx.insert_run(&NewRun::by_supervisor(task, Purpose::Work, &boot, now))?;
        let finished = Finished::new(&task.id, status, outcome);
        self.tx.close_run(run, &Close::without_process(&finished, handoff, error, now))?;
        Ok(run)
    }

    /// Stores the result and the artifacts of a handoff on its task. The summary is stored as the result if the handoff
    /// has no result.
    pub(super) fn keep_handoff(&self, id: &TaskId, handoff: &Handoff) -> Result<(), Error> {
        if let Some(result) = handoff.result.as_deref().or(handoff.summary.as_deref()) {
            self.set(id, &Field::Result(Some(result)))?;
        }
        if !handoff.artifacts.is_empty() {
            self.set(id, &Field::Artifacts(&handoff.artifacts))?;
        }
        Ok(())
    }
}

/// Returns the first line of a summary that is not blank, trimmed. Chats show this line.
fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// Refuses a decision about a run that is not the open run of the task.
pub(super) fn require_run(task: &Task, expected: RunId) -> Result<(), Error> {
    if task.current_run_id == Some(expected) {
        return Ok(());
    }
    let now = task.current_run_id.map_or_else(|| "none".to_owned(), |run| run.to_string());
    let (id, status) = (&task.id, task.status);
    Err(Error::conflict(
        format!("run {expected} is not the open run of {id} (that is: {now}; status {status})"),
        "the task has moved on; nothing was done",
    ))
}

/// Returns the payload of a `completed` event.
pub(super) fn completed(handoff: &Handoff) -> serde_json::Value {
    json!({
        "result_len": handoff.result.as_ref().map_or(0, String::len),
        "summary": preview(handoff.summary.as_deref().and_then(first_line)),
        "artifacts": handoff.artifacts,
    })
}

fn reason(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Block(blocking) => preview(blocking.reason.as_deref()),
        Verdict::Complete(handoff) => preview(handoff.summary.as_deref()),
        Verdict::RequestReview(request) => preview(request.handoff.summary.as_deref()),
        Verdict::RequestChanges { reason } => preview(Some(reason)),
        Verdict::Approve | Verdict::Archive { .. } | Verdict::Move { .. } => None,
    }
}
