//! Proposals: tasks that specify, divide, plan or route another task, or review a mission. A result is applied in the
//! transaction that records it as done, or refused with a reason.
//!
//! See decision 0156.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Board, Record, SYSTEM};
use crate::board::view::View;
use crate::model::actor::{Actor, ActorKind};
use crate::model::error::{Error, ErrorCode};
use crate::model::event::EventKind;
use crate::model::id::{Profile, TaskId};
use crate::model::mission::MissionLimits;
use crate::model::outcome::{EndCause, Ending, OnCleanExit, Outcome};
use crate::model::proposal::{NewProposal, Proposal, ProposalKind};
use crate::model::run::{Purpose, Run};
use crate::model::schedule::TemplateTask;
use crate::model::state::{Change, State, Then};
use crate::model::status::WasDone;
use crate::model::task::{Lineage, NewTask, Task};
use crate::model::verdict::{Handoff, Verdict};
use crate::rules::context::Brief;
use crate::rules::links::AtWork;
use crate::rules::proposal;
use crate::rules::proposed::{Proposed, STAFF};
use crate::rules::retry::{self, Decision, Tally};
use crate::rules::{authority, mission};
use crate::store::fields::Field;

use super::create::Created;

/// Longest part of the subject's title in the title of a proposal, in characters.
const SUBJECT: usize = 300;

/// Hint for a proposal beyond the limits of its mission or tenant.
const NO_ROOM: &str = "nothing was recorded and the run goes on: return fewer tasks, or try again later; where its mission lacks tasks, that \
    is paused, and a person is asked whether it may have more";

impl Board<'_> {
    /// Creates the task of a proposal. Returns an open proposal of the same kind for the same task, if there is one.
    pub fn propose(&mut self, new: NewProposal, actor: &Actor) -> Result<Created, Error> {
        let kind = new.kind;
        authority::person(actor, "ask for a proposal")?;
        let subject = match kind {
            // Any task of a mission stands for the mission.
            ProposalKind::Plan | ProposalKind::Progress => self.mission_of(&new.subject, actor)?,
            ProposalKind::Specify | ProposalKind::Decompose | ProposalKind::Route => {
                self.task_for(&new.subject, actor)?
            }
        };
        if let Some(open) = self.tx.open_proposal(&subject.id, kind)? {
            return Ok(Created { task: self.expect_task(&open)?, existing: true });
        }
        if self.tx.proposal(&subject.id)?.is_some() {
            return Err(Error::conflict(
                format!("{} is itself the task of a proposal", subject.id),
                "name the task that it is for",
            ));
        }
        proposal::may_ask(kind, &subject)?;
        let title: String = subject.title.chars().take(SUBJECT).collect();
        // Dividing a task makes it a mission with limits. Specifying or routing does not, so the mission is named only
        // if there is one.
        let divides = matches!(kind, ProposalKind::Decompose | ProposalKind::Plan | ProposalKind::Progress);
        let is_part = subject.lineage.mission.is_some() || self.tx.mission(subject.mission())?.is_some();
        let mission = (divides || is_part).then(|| subject.mission().to_owned());
        let task = NewTask {
            title: format!("{} {}: {title}", kind.heading(), subject.id),
            assignee: Some(new.assignee.clone()),
            tenant: subject.tenant.clone(),
            priority: subject.priority,
            policy: new.policy,
            created_by: new.author,
            lineage: Lineage { mission, ..Lineage::default() },
            ..NewTask::default()
        };
        let task = self.create(task, actor)?.task;
        // The run of a proposal gives no task to a profile without a sandbox, as no other worker does.
        let has_policy = subject.policy.is_some();
        let is_offered =
            |name: &Profile| *name != new.assignee && (has_policy || !new.unconfined.contains(name));
        let short = |about: &str| about.chars().take(STAFF.1).collect::<String>();
        let staff: BTreeMap<Profile, String> = new
            .staff
            .iter()
            .filter(|(name, _)| is_offered(name))
            .take(STAFF.0)
            .map(|(name, about)| (name.clone(), short(about)))
            .collect();
        let (proposing, taken) = (task.id.clone(), new.taken);
        let proposal = Proposal { task: proposing, kind, subject: subject.id.clone(), staff, taken };
        self.tx.put_proposal(&proposal)?;
        if kind == ProposalKind::Progress {
            // The creation of the review's task does not count as progress of the mission.
            self.tx.note_review(subject.mission())?;
        }
        let payload = json!({ "kind": kind, "task": task.id, "assignee": new.assignee });
        self.append(&subject, None, EventKind::ProposalAsked, payload, &actor.label())?;
        if kind == ProposalKind::Plan {
            // The plan comes before everything else of the mission.
            self.link(&task.id, &subject.id, AtWork::TakeBack, actor)?;
        }
        Ok(Created { task: self.expect_task(&task.id)?, existing: false })
    }

    /// Removes profiles from the open proposals: those in `gone`, and those in `unconfined` where the task names no
    /// policy.
    pub fn withdraw_profiles(
        &mut self,
        gone: &BTreeSet<Profile>,
        unconfined: &BTreeSet<Profile>,
    ) -> Result<(), Error> {
        for mut proposal in self.tx.open_proposals()? {
            let before = proposal.staff.len();
            let has_policy = self.task(&proposal.subject)?.is_some_and(|subject| subject.policy.is_some());
            proposal
                .staff
                .retain(|name, _| !gone.contains(name) && (has_policy || !unconfined.contains(name)));
            if proposal.staff.len() < before {
                self.tx.set_staff(&proposal.task, &proposal.staff)?;
            }
        }
        Ok(())
    }

    /// Refuses a verdict that a proposal's task cannot have, and a result that cannot be applied. For a task without an
    /// open run, applies the result at once.
    pub(super) fn check_proposal_verdict(
        &mut self,
        id: &TaskId,
        verdict: &Verdict,
        actor: &Actor,
    ) -> Result<(), Error> {
        let Some(proposal) = self.tx.proposal(id)? else { return Ok(()) };
        let task = self.task_for(id, actor)?;
        match verdict {
            Verdict::Complete(handoff) if task.current_run_id.is_some() => {
                self.rehearse(|board| board.apply(&proposal, handoff))
            }
            Verdict::Complete(handoff) => self.apply(&proposal, handoff),
            Verdict::RequestReview(_) => Err(Error::conflict(
                format!("{id} makes a proposal, which is validated when it is returned"),
                format!("complete it with the required metadata: `supervisor context {id}`"),
            )),
            Verdict::Approve
            | Verdict::RequestChanges { .. }
            | Verdict::Block(_)
            | Verdict::Archive { .. }
            | Verdict::Move { .. } => Ok(()),
        }
    }

    /// Refuses a write of a worker that makes a proposal.
    pub(super) fn refuse_proposal_worker(&self, actor: &Actor) -> Result<(), Error> {
        let Some(own) = actor.run.as_ref().filter(|_| actor.kind == ActorKind::Worker) else { return Ok(()) };
        if self.tx.proposal(&own.task)?.is_none() {
            return Ok(());
        }
        Err(Error::forbidden(
            format!("{} makes a proposal: its worker changes nothing else", own.task),
            "return the result with `supervisor complete --metadata`, or block with a question to a person",
        ))
    }

    /// Returns the run with the result of its clean exit, for a proposal's task: the last words of the agent may hold it.
    /// Such a result needs no review.
    pub(super) fn with_returned_proposal(&self, run: Run, ending: &Ending) -> Result<Run, Error> {
        let is_silent = run.verdict.is_none() && run.stop_reason.is_none() && run.purpose == Purpose::Work;
        if !is_silent || !matches!(ending.cause, EndCause::Exited { code: 0 }) {
            return Ok(run);
        }
        let (OnCleanExit::Complete { summary }
        | OnCleanExit::Review { summary }
        | OnCleanExit::TurnEnded { summary }) = &ending.result_policy
        else {
            return Ok(run);
        };
        if self.tx.proposal(&run.task_id)?.is_none() {
            return Ok(run);
        }
        let handoff = Handoff { summary: summary.clone(), ..Handoff::default() };
        Ok(Run { verdict: Some(Verdict::Complete(handoff)), ..run })
    }

    /// Applies the proposal of a finished run. If the proposal is refused, the run has failed, and the next run reads the
    /// reason.
    pub(super) fn proposed(
        &mut self,
        run: &Run,
        decision: Decision,
        ending: &Ending,
        tally: Tally,
    ) -> Result<Decision, Error> {
        let (Outcome::Completed, Some(handoff)) = (decision.outcome, &decision.handoff) else {
            return Ok(decision);
        };
        let Some(proposal) = self.tx.proposal(&run.task_id)? else { return Ok(decision) };
        match self.attempt(|board| board.apply(&proposal, handoff)) {
            Ok(()) => Ok(decision),
            Err(error @ (Error::Storage { .. } | Error::Writer { .. })) => Err(error),
            // The task was archived in the meantime, so nothing is tried again.
            Err(_) if decision.then == Then::Archived(WasDone::Yes) => Ok(decision),
            Err(error) => {
                if error.code() == ErrorCode::Exhausted {
                    self.ask_for_room(&proposal, handoff, run)?;
                }
                let why = format!("what it returned was refused: {error}");
                Ok(retry::refused(&why, ending, tally, self.now()))
            }
        }
    }

    /// Applies a proposal as a whole. A proposal changes nothing if its subject has gone on without it.
    fn apply(&mut self, proposal: &Proposal, handoff: &Handoff) -> Result<(), Error> {
        let proposing = self.expect_task(&proposal.task)?;
        let subject = self.task(&proposal.subject)?;
        let Some(subject) = subject.filter(|subject| proposal.kind.applies_to(subject)) else {
            let payload = json!({ "kind": proposal.kind, "subject": proposal.subject });
            return self.append(&proposing, None, EventKind::ProposalDropped, payload, SYSTEM);
        };
        let proposed = proposal::read(proposal, handoff)?;
        match proposal.kind {
            ProposalKind::Route => self.assign(&subject.id, proposed.assignee, &Actor::system()).map(drop),
            ProposalKind::Specify | ProposalKind::Decompose | ProposalKind::Plan => {
                self.apply_to_subject(proposal, &proposing, &subject, &proposed)
            }
            ProposalKind::Progress => self.put_review(proposal, &proposing, &subject, &proposed),
        }
        .map_err(|error| match error {
            error @ (Error::Storage { .. } | Error::Writer { .. }) => error,
            Error::Exhausted { message, .. } => Error::Exhausted { message, hint: NO_ROOM.to_owned() },
            error @ (Error::NotFound { .. }
            | Error::Conflict { .. }
            | Error::Illegal { .. }
            | Error::Invalid { .. }
            | Error::Forbidden { .. }) => proposal::refused(proposal.kind, error),
        })
    }

    /// Creates the tasks of a proposal, and gives their parent task its new fields. The parent then waits for them.
    fn apply_to_subject(
        &mut self,
        proposal: &Proposal,
        proposing: &Task,
        subject: &Task,
        proposed: &Proposed,
    ) -> Result<(), Error> {
        let id = &subject.id;
        let made = self.create_proposed_tasks(proposal, proposing, subject, &proposed.tasks)?;
        let fields: &mut Vec<&'static str> = &mut Vec::new();
        if let Some(title) = &proposed.title {
            self.change(id, "title", &Field::Title(title), fields)?;
        }
        if let Some(body) = &proposed.body {
            self.change(id, "body", &Field::Body(Some(body)), fields)?;
        }
        if let Some(assignee) = &proposed.assignee {
            self.change(id, "assignee", &Field::Assignee(Some(assignee)), fields)?;
        }
        let mut payload =
            json!({ "changed_fields": fields, "proposal": proposal.task, "by": proposing.assignee });
        if !proposed.profiles.is_empty() {
            self.tx.put_proposed_profiles(&proposing.id, &proposed.profiles)?;
            payload["profiles"] = proposed.profiles.iter().map(|profile| json!(profile.name)).collect();
        }
        let kind = match proposal.kind {
            ProposalKind::Plan => EventKind::Planned,
            ProposalKind::Decompose if !made.is_empty() => EventKind::Decomposed,
            ProposalKind::Specify
            | ProposalKind::Decompose
            | ProposalKind::Route
            | ProposalKind::Progress => EventKind::Specified,
        };
        if !made.is_empty() {
            payload["child_ids"] = json!(made);
            payload["root_assignee"] = json!(proposed.assignee.as_ref().or(subject.assignee.as_ref()));
        }
        self.promote_subject(subject, kind, payload)
    }

    /// Creates proposed tasks in the mission of their subject, with the subject's settings. Returns their ids.
    pub(super) fn create_proposed_tasks(
        &mut self,
        proposal: &Proposal,
        proposing: &Task,
        subject: &Task,
        parts: &[TemplateTask],
    ) -> Result<Vec<TaskId>, Error> {
        let depth = subject.lineage.depth.saturating_add(1);
        mission::depth(depth, &self.limits_of(subject)?)?;
        // The board acts for the creator of the subject, within the quotas of its tenant.
        let actor = Actor { uid: subject.creator_uid, tenant: subject.tenant.clone(), ..Actor::system() };
        // The tasks of a new plan name their parents themselves.
        let before: Vec<TaskId> = match proposal.kind {
            ProposalKind::Progress => Vec::new(),
            ProposalKind::Specify | ProposalKind::Decompose | ProposalKind::Plan | ProposalKind::Route => {
                self.parents(&subject.id)?.into_iter().filter(|parent| *parent != proposal.task).collect()
            }
        };
        let mut made: BTreeMap<&str, TaskId> = BTreeMap::new();
        for part in parts {
            let mut parents = before.clone();
            parents.extend(part.task.parents.iter().cloned());
            parents.extend(part.after.iter().filter_map(|name| made.get(name.as_str()).cloned()));
            let new = NewTask {
                parents,
                tenant: subject.tenant.clone(),
                priority: subject.priority,
                workspace: subject.workspace.clone(),
                policy: subject.policy.clone().or_else(|| proposing.policy.clone()),
                created_by: proposing.assignee.as_ref().map(ToString::to_string),
                lineage: Lineage { mission: Some(subject.mission().to_owned()), depth, consult: None },
                ..part.task.clone()
            };
            let task = self.create(new, &actor)?.task;
            made.insert(&part.name, task.id);
        }
        // The subject waits for the tasks that no other new task waits for.
        let awaited = |part: &&TemplateTask| !parts.iter().any(|other| other.after.contains(&part.name));
        for last in parts.iter().filter(awaited) {
            self.link(&made[last.name.as_str()], &subject.id, AtWork::TakeBack, &actor)?;
        }
        Ok(parts.iter().map(|part| made[part.name.as_str()].clone()).collect())
    }

    /// Lets the subject of an applied proposal leave triage. A subject in the queue stays there.
    fn promote_subject(&self, subject: &Task, kind: EventKind, payload: Value) -> Result<(), Error> {
        let from = self.state_row(&subject.id)?;
        if from.state != State::Triage {
            return self.append(subject, None, kind, payload, SYSTEM);
        }
        let change = Change::Promoted { gate: self.gate(&subject.id, from.not_before)? };
        self.shift(&subject.id, &from, change, Record::new(kind, payload, SYSTEM)).map(drop)
    }
}

impl View<'_> {
    /// Returns the profiles that open proposals may name.
    pub fn offered_profiles(&self) -> Result<BTreeSet<Profile>, Error> {
        Ok(self.tx.open_proposals()?.into_iter().flat_map(|proposal| proposal.staff.into_keys()).collect())
    }

    /// Returns ready tasks without an assignee for which no routing was asked, at most `limit`. Tasks of missions without
    /// another free task are skipped, and do not hide others.
    pub fn unrouted(&self, limits: &MissionLimits, limit: u32) -> Result<Vec<Task>, Error> {
        let mut full = BTreeSet::new();
        loop {
            let unrouted = self.tx.unrouted(&full, limit)?;
            let known = full.len();
            for task in &unrouted {
                let used = self.tx.mission(task.mission())?.unwrap_or_default();
                if mission::room_for_task(task.mission(), &used, limits).is_err() {
                    full.insert(task.mission().to_owned());
                }
            }
            if full.len() == known {
                return Ok(unrouted);
            }
        }
    }

    /// Returns the additional context for the worker of a proposal; none for any other task.
    pub(super) fn proposal_of(&self, id: &TaskId) -> Result<Option<Brief>, Error> {
        let Some(proposal) = self.tx.proposal(id)? else { return Ok(None) };
        let Some(subject) = self.task(&proposal.subject)? else { return Ok(None) };
        let facts = match proposal.kind {
            ProposalKind::Progress => self.progress_of(&subject)?,
            ProposalKind::Specify | ProposalKind::Decompose | ProposalKind::Plan | ProposalKind::Route => {
                Vec::new()
            }
        };
        Ok(Some(Brief { proposal, subject, facts }))
    }
}
