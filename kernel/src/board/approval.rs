//! Approvals: a task that needs one parks when its parents are done, and only its approver lets it go on.

use serde_json::json;

use super::{Board, Record, Settled, preview};
use crate::model::actor::{Actor, ActorKind, Label};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::TaskId;
use crate::model::limits;
use crate::model::outcome::{ApprovalState, BlockKind};
use crate::model::status::{Change, Gate};
use crate::model::task::{Approval, NewTask, Task};
use crate::model::verdict::{Finding, Question};
use crate::store::fields::Field;

/// The most parents that a request describes; `show` names the others.
const FINDINGS: usize = 20;

impl Board<'_> {
    /// Puts what the tasks before have come to into the request, and says that it waits.
    pub(super) fn ask_for_approval(&self, id: &TaskId, actor: &str) -> Result<(), Error> {
        let task = self.expect_task(id)?;
        let mut results = Vec::new();
        for parent in self.parents(id)?.into_iter().take(FINDINGS) {
            let title = self.expect_task(&parent)?.title;
            let summary = self.last_completed_run(&parent)?.and_then(|run| run.summary);
            let summary = summary.map(|text| text.chars().take(2000).collect());
            results.push(Finding { task: parent.to_string(), title, summary });
        }
        let question =
            Question { text: format!("May it go on: {}", task.title), results, ..Question::default() };
        self.tx.set_request(id, &reason(&task), &question)?;
        let payload = json!({ "approver": task.approval.approver, "class": task.approval.class, "parents": self.parents(id)? });
        self.append(&task, None, EventKind::ApprovalRequested, payload, actor)
    }

    /// Lets a task go on that waits for an approval.
    pub(super) fn grant(
        &mut self,
        task: &Task,
        comment: Option<&str>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        may_decide(task, actor)?;
        self.let_go_on(task, comment, None, actor)
    }

    /// Lets a task go on in place of the approver that it names: somebody who cannot be reached, or is nobody. The log
    /// tells whom it overrode.
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
        self.let_go_on(&task, comment, overridden.as_deref(), actor)
    }

    fn let_go_on(
        &mut self,
        task: &Task,
        comment: Option<&str>,
        overridden: Option<&str>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let id = &task.id;
        self.remark(id, comment, actor)?;
        if task.approval.state == Some(ApprovalState::Required) {
            self.set(id, &Field::Approval(ApprovalState::Granted))?;
        }
        let from = self.standing(id)?;
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
            .of(actor.run.as_ref().map(|own| own.run));
        self.shift(id, &from, Change::Approved { gate }, record)?;
        self.forget_failures(id)?;
        self.settled(id, None)
    }

    /// Refuses to let a task go on that waits for an approval: it goes to triage, where a person changes it or archives
    /// it. The tasks that wait for it go on waiting.
    pub fn deny(&mut self, id: &TaskId, reason: &str, actor: &Actor) -> Result<Settled, Error> {
        limits::filled("reason", reason, "say why not")?;
        limits::bytes("reason", reason, limits::SUMMARY)?;
        let task = self.task_for(id, actor)?;
        if task.block_kind != Some(BlockKind::Approval) {
            return Err(Error::conflict(
                format!("{id} does not wait for an approval: its status is {}", task.status),
                "work in review is sent back with `supervisor request-changes`",
            ));
        }
        may_decide(&task, actor)?;
        self.remark(id, Some(reason), actor)?;
        let from = self.standing(id)?;
        let payload = json!({ "class": task.approval.class, "reason": preview(Some(reason)) });
        let label = actor.label();
        let record =
            Record::new(EventKind::ApprovalDenied, payload, &label).of(actor.run.as_ref().map(|own| own.run));
        self.shift(id, &from, Change::SentToTriage, record)?;
        self.settled(id, None)
    }
}

/// What a task that waits for an approval says.
pub(super) fn reason(task: &Task) -> String {
    let whom = task.approval.approver.as_deref().unwrap_or("a person");
    let class = task.approval.class.map(|class| format!(" ({class})")).unwrap_or_default();
    format!("waits for the approval of {whom}{class}")
}

/// Refuses an actor that is not the approver: the named one, else any person, but never the assignee.
fn may_decide(task: &Task, actor: &Actor) -> Result<(), Error> {
    let hint = format!("{}; see `supervisor show {}`", reason(task), task.id);
    if task.assignee.as_ref().is_some_and(|assignee| actor.works_as(assignee)) {
        return Err(Error::forbidden(format!("{} is to be done by {} itself", task.id, actor.name), hint));
    }
    let allowed = match &task.approval.approver {
        Some(approver) => actor.is_approver(approver),
        None => actor.kind != ActorKind::Worker,
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

/// Refuses a new task whose approval would be none.
pub(super) fn validate(new: &NewTask, actor: &Actor) -> Result<(), Error> {
    let Approval { state, class, approver } = &new.approval;
    if state.is_none() && (approver.is_some() || class.is_some()) {
        return Err(Error::invalid(
            "require_approval",
            "an approver or a class is named, and no approval is required",
            "add `--require-approval`",
        ));
    }
    let Some(approver) = approver else { return Ok(()) };
    if new.assignee.as_ref().is_some_and(|assignee| assignee.as_str() == Label::parse(approver).name) {
        return Err(Error::invalid("approver", format!("{approver} is to do it"), "name somebody else"));
    }
    if actor.kind == ActorKind::Worker && actor.is_approver(approver) {
        return Err(Error::forbidden(
            "a worker may not name itself as the approver of a task that it makes",
            "leave the approver out for a person",
        ));
    }
    Ok(())
}
