//! Approvals: a task that needs an approval is blocked when its parents are done, and only its approver lets it go on.
//!
//! A worker asks for an approval by a verdict, so its run ends: a call that waits in the run for hours would cost a
//! slot, and end with the host. No worker decides a request of a worker. The rule of a class is read when it is
//! needed, so a change of the configuration holds for requests that wait.

use serde_json::json;

use super::charge::Cost;
use super::{Board, Record, SYSTEM, Settled, preview};
use crate::model::actor::{Actor, ActorKind};
use crate::model::approval::{ApprovalGate, ApprovalRule};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{ApprovalClass, RunId, TaskId};
use crate::model::limits;
use crate::model::outcome::{ApprovalState, BlockKind};
use crate::model::quota::Bound;
use crate::model::run::Run;
use crate::model::state::{Change, Gate, State};
use crate::model::status::Status;
use crate::model::task::{NewTask, Task};
use crate::model::verdict::{Blocking, ParentResult, Question, Verdict};
use crate::rules::{authority, new_task};
use crate::store::fields::Field;

/// Largest number of parents that a request describes; `show` lists the others.
const PARENT_RESULTS: usize = 20;

impl Board<'_> {
    /// Puts the results of the parents into the request, and announces it.
    pub(super) fn ask_for_approval(&self, id: &TaskId, actor: &str) -> Result<(), Error> {
        let task = self.expect_task(id)?;
        let mut results = Vec::new();
        for parent in self.parents(id)?.into_iter().take(PARENT_RESULTS) {
            let title = self.expect_task(&parent)?.title;
            let summary = self.last_completed_run(&parent)?.and_then(|run| run.summary);
            let summary = summary.map(|text| text.chars().take(2000).collect());
            results.push(ParentResult { task: parent.to_string(), title, summary });
        }
        let text = format!("Approve this task: {}", task.title);
        let text = match &task.approval.class {
            Some(class) => self.rule(&task).request(class, id.as_str(), &task.title, &text),
            None => text,
        };
        let question = Question { text, results, ..Question::default() };
        self.tx.set_request(id, &self.approval_reason(&task), &question)?;
        self.announce_request(&task, actor)
    }

    /// Starts the time limit of a request, and announces it.
    fn announce_request(&self, task: &Task, actor: &str) -> Result<(), Error> {
        let until = self.rule(task).expires.map(|time| self.now().after(time));
        self.tx.set_approval_end(&task.id, until)?;
        let mut payload = json!({
            "approver": task.approval.approver, "class": task.approval.class, "parents": self.parents(&task.id)?,
        });
        if let Some(until) = until {
            payload["until"] = json!(until);
        }
        self.append(task, None, EventKind::ApprovalRequested, payload, actor)
    }

    /// Returns the rule of the task's approval class. A class that the configuration no longer has may be approved by any
    /// person.
    pub(super) fn rule(&self, task: &Task) -> ApprovalRule {
        let class = task.approval.class.as_ref();
        class.and_then(|class| self.quotas.approvals.rule_for(class).ok()).unwrap_or_default()
    }

    /// Applies the gate of its class to a new task. Returns the class if the configuration allows it without an approval.
    pub(super) fn apply_gate(&self, new: &mut NewTask) -> Result<Option<ApprovalClass>, Error> {
        let Some(class) = new.approval.class.clone() else { return Ok(None) };
        match self.quotas.approvals.rule_for(&class)?.gate {
            ApprovalGate::Deny => Err(denied_by_rule(&class)),
            ApprovalGate::Allow if new.approval.state.is_none() => {
                new.approval.state = Some(ApprovalState::Granted);
                Ok(Some(class))
            }
            ApprovalGate::Ask | ApprovalGate::Allow => {
                new.approval.state.get_or_insert(ApprovalState::Required);
                Ok(None)
            }
        }
    }

    /// Records that the configuration allows an action.
    pub(super) fn record_allowed(
        &self,
        task: &Task,
        run: Option<RunId>,
        class: &ApprovalClass,
    ) -> Result<(), Error> {
        let payload = json!({ "class": class, "comment": "allowed by the configuration" });
        self.append(task, run, EventKind::ApprovalGranted, payload, SYSTEM)
    }

    /// Asks for the approval of a worker's next act. The run ends with the request, and the next run reads the decision.
    /// An act that the configuration allows goes on at once.
    pub fn ask_approval(
        &mut self,
        id: &TaskId,
        class: &ApprovalClass,
        text: &str,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let Some(run) = self.live_run(actor)? else {
            return Err(Error::invalid(
                "class",
                "a worker asks for the approval of what it does",
                format!("have a task wait for one: `supervisor create '…' --approval-class {class}`"),
            ));
        };
        let task = self.task_for(id, actor)?;
        authority::own_task(actor, id, task.current_run_id)?;
        limits::filled("question", text, "say what is to be approved")?;
        limits::bytes("question", text, limits::SUMMARY)?;
        let rule = self.quotas.approvals.rule_for(class)?;
        match rule.gate {
            ApprovalGate::Deny => return Err(denied_by_rule(class)),
            ApprovalGate::Allow => {
                self.charge(actor, Cost::one(Bound::Notes))?;
                self.record_allowed(&task, Some(run.id), class)?;
                return self.settled(id, None);
            }
            ApprovalGate::Ask => {}
        }
        let text = rule.request(class, id.as_str(), &task.title, text);
        let question = Question { text, approval: Some(class.clone()), ..Question::default() };
        let reason = Some(format!("asks for an approval ({class}): {}", question.text));
        let blocking =
            Blocking { kind: BlockKind::Approval, reason, question: Some(question), ..Blocking::default() };
        self.decide(id, Verdict::Block(blocking), None, actor)
    }

    /// Gives a task the approval that its run has asked for, when the end of the run blocks the task for it.
    pub(super) fn store_asked_approval(&self, run: &Run, to: State) -> Result<(), Error> {
        let Some(Verdict::Block(Blocking { question: Some(question), .. })) = &run.verdict else {
            return Ok(());
        };
        if let (Some(class), State::Blocked { kind: BlockKind::Approval }) = (&question.approval, to) {
            self.tx.require_approval(&run.task_id, class)?;
            self.announce_request(&self.expect_task(&run.task_id)?, SYSTEM)?;
        }
        Ok(())
    }

    /// Grants the approval that a task waits for.
    pub(super) fn grant(
        &mut self,
        task: &Task,
        comment: Option<&str>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        self.may_decide(task, actor)?;
        self.grant_approval(task, comment, None, actor)
    }

    /// Grants an approval in place of the approver that the task names, who cannot be reached or does not exist. The
    /// event names the overridden approver.
    pub fn override_approval(
        &mut self,
        id: &TaskId,
        comment: Option<&str>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let task = self.for_person(id, actor, "override an approver")?;
        if task.block_kind != Some(BlockKind::Approval) {
            return Err(Error::conflict(
                format!("{id} does not wait for an approval: its status is {}", task.status),
                "leave `--override` out",
            ));
        }
        let overridden = task.approval.approver.clone().filter(|approver| !actor.is_approver(approver));
        self.grant_approval(&task, comment, overridden.as_deref(), actor)
    }

    fn grant_approval(
        &mut self,
        task: &Task,
        comment: Option<&str>,
        overridden: Option<&str>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let id = &task.id;
        match worker_request(task) {
            Some(asked) => {
                let remark = comment.map(|comment| format!("\n{comment}")).unwrap_or_default();
                self.add_comment(id, &format!("APPROVED ({}): {}{remark}", asked.0, asked.1), None, actor)?;
            }
            None => self.remark(id, comment, actor)?,
        }
        self.tx.set_approval_end(id, None)?;
        if task.approval.state == Some(ApprovalState::Required) {
            self.set(id, &Field::Approval(ApprovalState::Granted))?;
        }
        // Work that was handed over before goes back to its review.
        let from = self.state_row(id)?;
        let gate = match task.work_by {
            Some(_) => Gate::Review,
            None => self.gate(id, from.not_before)?,
        };
        let mut payload = json!({ "class": task.approval.class, "comment": preview(comment) });
        if let Some(approver) = overridden {
            payload["overridden"] = approver.into();
        }
        let label = actor.label();
        let record = Record::new(EventKind::ApprovalGranted, payload, &label)
            .in_run(actor.run.as_ref().map(|own| own.run));
        self.shift(id, &from, Change::Approved { gate }, record)?;
        self.forget_failures(id)?;
        self.settled(id, None)
    }

    /// Denies the approval that a task waits for. The task goes to triage, where a person changes or archives it. Its
    /// children go on waiting.
    pub fn deny(&mut self, id: &TaskId, reason: &str, actor: &Actor) -> Result<Settled, Error> {
        limits::filled("reason", reason, "say why not")?;
        limits::bytes("reason", reason, limits::SUMMARY)?;
        let task = self.task_for(id, actor)?;
        if task.block_kind != Some(BlockKind::Approval) {
            return Err(Error::conflict(
                format!("{id} does not wait for an approval: its status is {}", task.status),
                if task.status == Status::Review {
                    format!("send it back: `supervisor request-changes {id} '…'`")
                } else {
                    format!("`supervisor show {id}` says where it stands")
                },
            ));
        }
        self.may_decide(&task, actor)?;
        self.deny_approval(&task, reason, actor)
    }

    /// Denies a request that was not decided in time.
    pub(super) fn deny_expired(&mut self, id: &TaskId) -> Result<(), Error> {
        let task = self.expect_task(id)?;
        self.deny_approval(&task, "nobody approved it in time", &Actor::system()).map(drop)
    }

    /// Denies a request. A task whose worker has asked goes on without the act; any other task goes to triage.
    fn deny_approval(&mut self, task: &Task, reason: &str, actor: &Actor) -> Result<Settled, Error> {
        let id = &task.id;
        let from = self.state_row(id)?;
        let change = if let Some((class, text)) = worker_request(task) {
            self.add_comment(id, &format!("DENIED ({class}): {text}\n{reason}"), None, actor)?;
            self.tx.drop_approval(id)?;
            let gate = match task.work_by {
                Some(_) => Gate::Review,
                None => self.gate(id, from.not_before)?,
            };
            Change::Approved { gate }
        } else {
            self.add_comment(id, reason, None, actor)?;
            self.tx.set_approval_end(id, None)?;
            Change::SentToTriage
        };
        let payload = json!({ "class": task.approval.class, "reason": preview(Some(reason)) });
        let label = actor.label();
        let record = Record::new(EventKind::ApprovalDenied, payload, &label)
            .in_run(actor.run.as_ref().map(|own| own.run));
        self.shift(id, &from, change, record)?;
        self.settled(id, None)
    }

    /// Returns the block reason of a task that waits for an approval.
    pub(super) fn approval_reason(&self, task: &Task) -> String {
        let approvers = self.rule(task).approvers.join(" or ");
        let others = if approvers.is_empty() { "a person" } else { approvers.as_str() };
        let whom = task.approval.approver.as_deref().unwrap_or(others);
        let class = task.approval.class.as_ref().map(|class| format!(" ({class})")).unwrap_or_default();
        format!("waits for the approval of {whom}{class}")
    }

    /// Refuses an actor who may not approve. Allowed is the approver that the task names, else an approver of the class,
    /// else any person. The assignee is never allowed.
    fn may_decide(&self, task: &Task, actor: &Actor) -> Result<(), Error> {
        let hint = format!("{}; see `supervisor show {}`", self.approval_reason(task), task.id);
        if task.assignee.as_ref().is_some_and(|assignee| actor.works_as(assignee)) {
            return Err(Error::forbidden(format!("{} is assigned to {} itself", task.id, actor.name), hint));
        }
        let named = self.rule(task).approvers;
        let is_one = |approver: &String| actor.is_approver(approver);
        let allowed = match &task.approval.approver {
            // No worker approves the request of a worker.
            Some(approver) if worker_request(task).is_none() => actor.is_approver(approver),
            Some(approver) => actor.kind != ActorKind::Worker && actor.is_approver(approver),
            None => actor.kind != ActorKind::Worker && (named.is_empty() || named.iter().any(is_one)),
        };
        if allowed {
            return Ok(());
        }
        let hint = match actor.kind {
            ActorKind::Person | ActorKind::System => {
                format!("{hint}; in place of the approver: `supervisor approve {} --override`", task.id)
            }
            ActorKind::Worker => hint,
        };
        Err(Error::forbidden(format!("{} may not decide about {}", actor.name, task.id), hint))
    }
}

/// Returns the class and the text of a worker's request; none for a task that needed the approval from the start.
fn worker_request(task: &Task) -> Option<(&ApprovalClass, &str)> {
    let question = task.question.as_ref()?;
    Some((question.approval.as_ref()?, question.text.as_str()))
}

fn denied_by_rule(class: &ApprovalClass) -> Error {
    Error::forbidden(
        format!("the configuration denies what is of the class `{class}`"),
        format!("do without it; an operator changes `gate` in [approvals.{class}] of supervisor.toml"),
    )
}

/// Refuses a new task with a meaningless approval, or with its maker as the approver.
pub(super) fn validate(new: &NewTask, actor: &Actor) -> Result<(), Error> {
    new_task::approval(new)?;
    let Some(approver) = &new.approval.approver else { return Ok(()) };
    if actor.kind == ActorKind::Worker && actor.is_approver(approver) {
        return Err(Error::forbidden(
            "a worker may not name itself as the approver of a task that it makes",
            "leave the approver out for a person",
        ));
    }
    Ok(())
}
