//! Progress reviews of missions: when a review is due, the reviewer's facts, and the effect of the answer.
//!
//! A move is a change of the status of a task, or a new task. Heartbeats, comments and tokens do not count as progress,
//! since an agent makes them by talking. A mission that stands still is reviewed once: the next time without progress is
//! counted from the next move.

use std::fmt::Write as _;

use serde_json::json;

use super::{Board, SYSTEM, preview};
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::clock::Timestamp;
use crate::model::counted::Counted;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::figures::{Dollars, brief};
use crate::model::id::TaskId;
use crate::model::missing::Missing;
use crate::model::proposal::{NewProposal, Proposal, ReviewAnswer, ReviewTerms};
use crate::model::status::Status;
use crate::model::task::Task;
use crate::rules::proposed::{Proposed, Review};

/// Limits on the facts for a reviewer: the number of tasks, and the characters of each task's result or reason.
const FACTS: (u32, usize) = (200, 200);

impl Board<'_> {
    /// Asks for a due review of a mission. Returns the reason if the review is refused; the next review is due when the
    /// mission moves again.
    pub fn ask_for_review(&mut self, new: NewProposal) -> Result<Option<String>, Error> {
        // The note stays when the proposal is refused. Otherwise the same review would be due again at once.
        self.tx.note_review(new.subject.as_str())?;
        match self.attempt(|board| board.propose(new, &Actor::system())) {
            Ok(_) => Ok(None),
            Err(error @ (Error::Storage { .. } | Error::Writer { .. })) => Err(error),
            Err(error) => Ok(Some(error.to_string())),
        }
    }

    /// Applies the answer of a review and records it in an event: `continue` changes nothing else, `stop` pauses the
    /// mission, `replan` drops tasks of the plan and creates new ones. Does nothing for a proposal of another kind.
    pub(super) fn put_review(
        &mut self,
        proposal: &Proposal,
        own: &Task,
        subject: &Task,
        proposed: &Proposed,
    ) -> Result<(), Error> {
        let Some(Review { answer, reason, drop }) = &proposed.review else { return Ok(()) };
        let mut payload = json!({
            "answer": answer, "reason": preview(Some(reason)), "proposal": proposal.task, "by": own.assignee,
        });
        match answer {
            ReviewAnswer::Continue => {}
            ReviewAnswer::Stop => {
                self.pause_mission_for(
                    subject.id.as_str(),
                    &format!("its review says stop: {reason}"),
                    None,
                )?;
            }
            ReviewAnswer::Replan => {
                may_plan_anew(subject)?;
                for id in drop {
                    self.drop_part(id, subject, reason)?;
                }
                // New tasks may wait only for tasks of the same mission.
                for part in &proposed.tasks {
                    for parent in &part.task.parents {
                        self.part_of(parent, subject)?;
                    }
                }
                payload["child_ids"] =
                    json!(self.create_proposed_tasks(proposal, own, subject, &proposed.tasks)?);
                payload["dropped"] = json!(drop);
            }
        }
        self.append(subject, None, EventKind::MissionReviewed, payload, SYSTEM)
    }

    /// Drops a task from the plan of a mission, with the reason as a comment: archives it, or cancels it if an open task of
    /// another mission waits for it. Refuses the first task, proposals, and tasks that run or are over.
    fn drop_part(&mut self, id: &TaskId, subject: &Task, reason: &str) -> Result<(), Error> {
        let part = self.part_of(id, subject)?;
        if part.id == subject.id || self.tx.proposal(id)?.is_some() {
            return Err(Error::conflict(format!("{id} is not part of the plan"), "leave it out"));
        }
        if matches!(part.status, Status::Running | Status::Done | Status::Archived) {
            let why =
                format!("{id} is {}: only a task that does not run and is not over is dropped", part.status);
            return Err(Error::conflict(why, "leave it out"));
        }
        let actor = Actor::system();
        self.keep_reason(id, "DROPPED", Some(reason), &actor)?;
        self.end_within(id, subject.id.as_str(), Some(reason), &actor)
    }

    /// Returns a task of the mission that `subject` belongs to.
    fn part_of(&self, id: &TaskId, subject: &Task) -> Result<Task, Error> {
        // A task of another mission is reported as missing, so that a reviewer learns nothing about it.
        let part = self.task(id)?.filter(|part| part.mission() == subject.mission());
        part.ok_or_else(|| Error::missing(Missing::TaskOfMission, id))
    }
}

impl View<'_> {
    /// Returns the first tasks of at most `limit` missions that are due for a review now.
    pub fn due_reviews(&self, terms: &ReviewTerms, limit: u32) -> Result<Vec<Task>, Error> {
        let since = terms.idle.map(|idle| self.now().before(idle));
        self.tx.due_reviews(terms.moves, since, limit)
    }

    /// Returns the time at which the next mission will have been idle long enough for a review; none without such a limit,
    /// and if no mission has moved since its last review.
    pub fn next_review(&self, terms: &ReviewTerms) -> Result<Option<Timestamp>, Error> {
        let Some(idle) = terms.idle else { return Ok(None) };
        Ok(self.tx.first_unmoved()?.map(|moved| moved.after(idle)))
    }

    /// Returns the facts about a mission for its reviewer, one per line: its use so far, then a line for each task.
    pub(super) fn progress_of(&self, subject: &Task) -> Result<Vec<String>, Error> {
        let mut facts = Vec::new();
        if let Some(used) = self.tx.mission_now(subject.id.as_str(), self.now())? {
            let (tasks, time) = (Counted(used.tasks, "task"), brief(used.runtime));
            let cost = Dollars(used.cost_micros);
            facts.push(format!("Used so far: {tasks}, {time} of run time, {cost}."));
        }
        for task in self.tx.tasks_of_mission(subject.id.as_str(), FACTS.0)? {
            let assignee = task.assignee.as_ref().map_or("nobody", |name| name.as_str());
            let mut line = format!("{} {} [{assignee}] {}", task.id, task.status, task.title);
            let after: Vec<String> = self.parents(&task.id)?.iter().map(ToString::to_string).collect();
            if !after.is_empty() {
                // Writing to a string cannot fail.
                let _ = write!(line, " (after {})", after.join(", "));
            }
            if let Some(fact) =
                task.result.as_deref().or(task.block_reason.as_deref()).or(task.last_failure_error.as_deref())
            {
                let fact: String = fact.chars().take(FACTS.1).collect();
                let _ = write!(line, ": {fact}");
            }
            facts.push(line);
        }
        Ok(facts)
    }
}

/// Refuses a new plan for a mission whose first task is running, or has an approval in any state.
fn may_plan_anew(subject: &Task) -> Result<(), Error> {
    let id = &subject.id;
    if subject.status == Status::Running {
        return Err(Error::conflict(
            format!("{id}, the first task of the mission, is running"),
            "answer `continue`, or `stop`",
        ));
    }
    if subject.approval.state.is_some() {
        return Err(Error::conflict(
            format!("{id} asks for an approval, which applies to it alone"),
            "answer `continue`, or `stop`",
        ));
    }
    Ok(())
}
