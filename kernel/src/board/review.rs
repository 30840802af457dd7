//! Reviews: a person or a profile other than the author has to approve the work before the task is done.

use serde_json::json;

use super::{Board, Record, Settled, preview, verdict, way_on};
use crate::model::actor::{Actor, ActorKind, Label};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::limits;
use crate::model::outcome::{ApprovalState, BlockKind, Outcome};
use crate::model::run::{Holder, Purpose, Run};
use crate::model::state::{Change, State};
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::verdict::{Handoff, ReviewRequest, Verdict, VerdictKind};
use crate::rules::recurrence::Recurrence;
use crate::rules::retry::{Decision, Tally};
use crate::rules::review_rounds;
use crate::store::fields::Field;
use crate::store::tasks::StateRow;

impl Board<'_> {
    /// Hands the work on a task to a reviewer: a profile, or any person if none is named.
    pub fn request_review(
        &mut self,
        id: &TaskId,
        handoff: Handoff,
        reviewer: Option<Profile>,
        expected_run: Option<RunId>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        handoff.within_limits()?;
        self.require_made(&handoff, actor)?;
        let task = self.task_for(id, actor)?;
        if task.approval.state == Some(ApprovalState::Required) {
            return Err(Error::conflict(
                format!("{id} may not begin before it is approved, so there is no work to review"),
                format!("approve it first: `supervisor approve {id}`"),
            ));
        }
        let work_by = self.author(&task, actor)?;
        if let Some(reviewer) = &reviewer
            && (Label::parse(&work_by).is_worker(reviewer) || task.assignee.as_ref() == Some(reviewer))
        {
            return Err(Error::invalid(
                "reviewer",
                format!("the work is {reviewer}'s own"),
                "name another profile, or nobody for a person",
            ));
        }
        let request = ReviewRequest { handoff, reviewer, work_by };
        self.decide(id, Verdict::RequestReview(request), expected_run, actor)
    }

    /// Approves the work of a task in review, which is done then. For a task that waits for an approval, grants the
    /// approval.
    pub fn approve(
        &mut self,
        id: &TaskId,
        comment: Option<&str>,
        expected_run: Option<RunId>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let task = self.task_for(id, actor)?;
        if task.block_kind == Some(BlockKind::Approval) {
            expected_run.map_or(Ok(()), |expected| verdict::require_run(&task, expected))?;
            return self.grant(&task, comment, actor);
        }
        self.remark(id, comment, actor)?;
        self.decide(id, Verdict::Approve, expected_run, actor)
    }

    /// Sends the work of a task in review back. A comment keeps the reason for the next worker.
    pub fn request_changes(
        &mut self,
        id: &TaskId,
        reason: &str,
        expected_run: Option<RunId>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        limits::filled("reason", reason, "say what has to change")?;
        limits::bytes("reason", reason, limits::SUMMARY)?;
        self.remark(id, Some(reason), actor)?;
        self.decide(id, Verdict::RequestChanges { reason: reason.to_owned() }, expected_run, actor)
    }

    /// Limits the rounds in which reviewers send work back. A person may send work back any number of times.
    pub(super) fn with_review_rounds(
        &self,
        run: &Run,
        decision: Decision,
        tally: Tally,
    ) -> Result<Decision, Error> {
        let Some(Verdict::RequestChanges { reason }) = &run.verdict else { return Ok(decision) };
        let by = self.tx.verdict_by(run.id)?.unwrap_or_default();
        if Label::parse(&by).kind != Some(ActorKind::Worker) {
            return Ok(decision);
        }
        let rounds = self.tx.rounds_of_changes(&run.task_id)?.saturating_add(1);
        let reason = preview(Some(reason)).unwrap_or_default();
        Ok(review_rounds::bounded(decision, rounds, Label::parse(&by).name, &reason, tally, self.now()))
    }

    pub(super) fn remark(&mut self, id: &TaskId, text: Option<&str>, actor: &Actor) -> Result<(), Error> {
        match text {
            Some(text) => self.add_comment(id, text, None, actor).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Returns the author of the work that is handed over now.
    fn author(&self, task: &Task, actor: &Actor) -> Result<String, Error> {
        let run = task.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        Ok(match run {
            // A person may report for a worker, but the work stays the worker's.
            Some(run) if run.holder == Holder::Supervisor => {
                format!(
                    "{}:{}",
                    ActorKind::Worker,
                    run.profile.map_or_else(|| "worker".to_owned(), String::from)
                )
            }
            Some(_) | None => actor.label(),
        })
    }

    /// Refuses a verdict that does not fit the purpose of the open run, and a verdict of the author about the own work.
    pub(super) fn check_purpose(&self, task: &Task, verdict: &Verdict, actor: &Actor) -> Result<(), Error> {
        let run = task.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        // Without an open run the status tells if the work is in review.
        let reviewed =
            run.as_ref().map_or(task.status == Status::Review, |run| run.purpose == Purpose::Review);
        match verdict.kind() {
            VerdictKind::Approve | VerdictKind::RequestChanges if reviewed => refuse_author(task, actor),
            VerdictKind::Approve
                if task.approval.state == Some(ApprovalState::Required) && task.status == Status::Triage =>
            {
                Err(Error::conflict(
                    format!("{} requests no approval now: it is in triage, as after a denial", task.id),
                    format!("request it: `supervisor promote {}`", task.id),
                ))
            }
            // All other tasks are not in review.
            VerdictKind::Approve | VerdictKind::RequestChanges => Err(Error::conflict(
                format!("{} is not in review: its status is {}", task.id, task.status),
                match (task.status, task.block_kind) {
                    (Status::Archived | Status::Done, _) | (Status::Blocked, Some(BlockKind::Approval)) => {
                        way_on(&task.id, task.status, task.block_kind)
                    }
                    _ => format!("ask for one first: `supervisor request-review {}`", task.id),
                },
            )),
            VerdictKind::Complete | VerdictKind::RequestReview
                if reviewed && actor.kind == ActorKind::Worker =>
            {
                Err(Error::conflict(
                    format!("this run reviews {}: its work is not this run's to hand over", task.id),
                    "end with `supervisor approve` or `supervisor request-changes '<what>'`",
                ))
            }
            VerdictKind::RequestReview if reviewed => Err(Error::conflict(
                format!("{} is in review already", task.id),
                format!("send it back first: `supervisor request-changes {} '…'`", task.id),
            )),
            // Completing work in review means approving it.
            VerdictKind::Complete if reviewed => refuse_author(task, actor),
            VerdictKind::Complete
            | VerdictKind::RequestReview
            | VerdictKind::Block
            | VerdictKind::Archive
            | VerdictKind::Move => Ok(()),
        }
    }

    /// Stores the reviewer and the author of the work.
    pub(super) fn keep_review(&self, id: &TaskId, request: &ReviewRequest) -> Result<(), Error> {
        self.set(id, &Field::Reviewer(request.reviewer.as_ref()))?;
        self.set(id, &Field::WorkBy(&request.work_by))
    }

    /// Hands over the work of a task without an open run. A run of zero length carries the handoff.
    pub(super) fn review_unclaimed(
        &mut self,
        task: &Task,
        state_row: &StateRow,
        request: &ReviewRequest,
        label: &str,
    ) -> Result<Settled, Error> {
        let change = Change::ReviewRequested;
        super::legal(&task.id, state_row.state, change)?;
        let handoff = &request.handoff;
        let run = self.zero_length(task, Outcome::ReviewRequested, Status::Review, Some(handoff), None)?;
        self.keep_handoff(&task.id, handoff)?;
        self.keep_review(&task.id, request)?;
        let payload = requested(request);
        let record = Record::new(EventKind::ReviewRequested, payload, label).in_run(run);
        self.shift(&task.id, state_row, change, record)?;
        self.set(&task.id, &Field::NotBefore(None))?;
        self.settled(&task.id, Some(run))
    }

    /// Approves the work of a task whose review has no open run.
    pub(super) fn approve_unclaimed(
        &mut self,
        task: &Task,
        state_row: &StateRow,
        label: &str,
    ) -> Result<Settled, Error> {
        self.record_approved(&task.id, None, label)?;
        self.forget_failures(&task.id)?;
        self.set_blocks(&task.id, Recurrence::default())?;
        let payload = self.completed_by_review(&task.id)?;
        let run = self.last_completed_run(&task.id)?.map(|run| run.id);
        let record = Record { run, ..Record::new(EventKind::Completed, payload, label) };
        self.shift(&task.id, state_row, Change::Completed, record)?;
        self.reevaluate_children(&task.id, label)?;
        self.settled(&task.id, None)
    }

    pub(super) fn record_approved(&self, id: &TaskId, run: Option<RunId>, label: &str) -> Result<(), Error> {
        let task = self.expect_task(id)?;
        self.append(&task, run, EventKind::Approved, Some(json!({ "work_by": task.work_by })), label)
    }

    /// Returns the payload of the `completed` event of approved work.
    pub(super) fn completed_by_review(&self, id: &TaskId) -> Result<serde_json::Value, Error> {
        let task = self.expect_task(id)?;
        let summary = self.last_completed_run(id)?.and_then(|run| run.summary);
        Ok(verdict::completed(&Handoff {
            result: task.result,
            summary,
            metadata: None,
            artifacts: task.artifacts,
        }))
    }
}

/// Returns the purpose of a run that starts from a state.
pub(super) fn purpose(state: State) -> Purpose {
    match state {
        State::Review => Purpose::Review,
        State::Checking { .. } => Purpose::Check,
        State::Triage
        | State::Todo
        | State::Scheduled { .. }
        | State::Ready
        | State::Running { .. }
        | State::Blocked { .. }
        | State::Done
        | State::Archived { .. } => Purpose::Work,
    }
}

/// Refuses a verdict of the author about the own work.
pub(super) fn refuse_author(task: &Task, actor: &Actor) -> Result<(), Error> {
    if task.work_by.as_deref().is_some_and(|author| actor.is_called(author)) {
        return Err(Error::forbidden(
            format!("the work on {} is {}'s own: somebody else has to review it", task.id, actor.name),
            format!(
                "ask another person, or withdraw it through the API: PATCH /api/v1/tasks/{} with {{\"status\": \"ready\"}}",
                task.id
            ),
        ));
    }
    Ok(())
}

/// Returns the payload of a `review_requested` event.
pub(super) fn requested(request: &ReviewRequest) -> serde_json::Value {
    let mut payload = verdict::completed(&request.handoff);
    payload["reviewer"] = json!(request.reviewer);
    payload["work_by"] = json!(request.work_by);
    payload
}
