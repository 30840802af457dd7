//! Verbs for missions: create, pause, resume and cancel them, and answer their questions.

use serde_json::json;

use super::archive::Detach;
use super::create::Created;
use super::{Answered, Board};
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::hold::{Hold, HoldKind, HoldOn, HoldScope, NewHold};
use crate::model::id::TaskId;
use crate::model::missing::Missing;
use crate::model::mission::MissionCaps;
use crate::model::outcome::BlockKind;
use crate::model::status::Status;
use crate::model::task::{NewTask, Task};
use crate::model::verdict::Question;
use crate::model::words::words;
use crate::rules::{authority, mission};

words! {
    /// Treatment of the open runs of a mission that is paused.
    "pause"
    Pause {
        /// The runs go on to their ends.
        Starts => "starts",
        /// The runs are ended, and their tasks are ready again.
        Runs => "runs",
    }
}

/// Result of an act on the tasks of a mission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissionEnds {
    /// Tasks that are over, or whose runs are being ended.
    pub ended: Vec<TaskId>,
    /// Tasks among them whose runs are being ended.
    pub ending: Vec<TaskId>,
}

impl Board<'_> {
    /// Creates a task that is a mission from the start, with limits of its own. For a known idempotency key, returns the
    /// existing task.
    pub fn create_mission(
        &mut self,
        new: NewTask,
        caps: &MissionCaps,
        actor: &Actor,
    ) -> Result<Created, Error> {
        authority::person(actor, "create a mission")?;
        caps.validate()?;
        let created = self.create(new, actor)?;
        if !created.existing {
            let task = &created.task;
            self.tx.open_mission(task.id.as_str())?;
            self.tx.cap_mission(task.id.as_str(), caps)?;
            self.tx.note_move(&task.id, self.now())?;
            self.append(task, None, EventKind::MissionCreated, json!(caps), &actor.label())?;
        }
        Ok(created)
    }

    /// Puts a person's task into the mission that it names by any of its tasks, and counts it there.
    pub(super) fn join_named_mission(&self, new: &mut NewTask, actor: &Actor) -> Result<(), Error> {
        let Some(named) = &new.lineage.mission else { return Ok(()) };
        let first =
            self.mission_of(&named.parse().map_err(|_| Error::missing(Missing::Mission, named))?, actor)?;
        if first.status == Status::Archived {
            return Err(Error::conflict(
                format!("the mission {} is over: its first task is archived", first.id),
                format!("bring it back first: `supervisor unarchive {}`", first.id),
            ));
        }
        match &new.tenant {
            None => new.tenant.clone_from(&first.tenant),
            Some(tenant) if Some(tenant) == first.tenant.as_ref() => {}
            Some(tenant) => {
                return Err(Error::invalid(
                    "mission",
                    format!("the mission {} is not one of the tenant {tenant}", first.id),
                    "leave the tenant out",
                ));
            }
        }
        let name = first.id.to_string();
        self.tx.open_mission(&name)?;
        self.count_task(&name)?;
        new.lineage.depth = new.lineage.depth.max(1);
        new.lineage.mission = Some(name);
        Ok(())
    }

    /// Keeps the tasks of a mission from starting until a person lets it go on.
    pub fn pause_by_hand(
        &mut self,
        id: &TaskId,
        what: Pause,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<MissionEnds, Error> {
        authority::person(actor, "pause a mission")?;
        let first = self.mission_of(id, actor)?;
        if first.is_cancelled() || matches!(first.status, Status::Done | Status::Archived) {
            return Err(Error::conflict(
                format!("the mission {} is over: its first task is {}", first.id, first.status),
                format!("see how it stands: `supervisor mission show {}`", first.id),
            ));
        }
        let reason = reason.map_or_else(|| format!("paused by {}", actor.name), str::to_owned);
        let new = NewHold { kind: HoldKind::Manual, reason: reason.clone(), until: None };
        self.hold(&mission_target(&first.id), &new, actor)?;
        let mut ends = MissionEnds::default();
        if what == Pause::Runs {
            for (_, task) in self.tx.open_runs_of_mission(first.id.as_str())? {
                match self.attempt(|board| board.reclaim(&task, Some(&reason), actor)) {
                    Ok(_) => ends.ending.push(task),
                    // The end of this run was decided in the meantime.
                    Err(Error::Conflict { .. } | Error::Illegal { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(ends)
    }

    /// Lets the tasks of a mission start again. A mission at a limit gets the limit once more. Returns true if it was at
    /// a limit.
    pub fn resume_mission(
        &mut self,
        id: &TaskId,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<bool, Error> {
        authority::person(actor, "resume a mission")?;
        let first = self.mission_of(id, actor)?;
        if !self.holds()?.iter().any(|hold| hold.on() == mission_target(&first.id)) {
            return Err(Error::conflict(
                format!("the mission {} is not paused", first.id),
                format!("see how it stands: `supervisor mission show {}`", first.id),
            ));
        }
        let ended = self.release(&mission_target(&first.id), reason, actor)?;
        Ok(ended.iter().any(|hold| hold.kind == HoldKind::Limit))
    }

    /// Cancels a mission: ends its runs and archives its unfinished tasks. A task with a child outside of the mission is
    /// blocked instead, so that the child does not go on without it.
    pub fn cancel_mission(
        &mut self,
        id: &TaskId,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<MissionEnds, Error> {
        authority::person(actor, "cancel a mission")?;
        let first = self.mission_of(id, actor)?;
        let name = first.id.to_string();
        for hold in self.holds()?.into_iter().filter(|hold| hold.on() == mission_target(&first.id)) {
            self.end_hold(&hold, "the mission is cancelled", None, &actor.label())?;
        }
        let mut ends = MissionEnds::default();
        // The latest tasks usually wait for the others, so they go first.
        for task in self.tx.tasks_of_mission(&name, u32::MAX)?.into_iter().rev() {
            if matches!(task.status, Status::Done | Status::Archived) {
                continue;
            }
            self.keep_reason(&task.id, "CANCELLED", reason, actor)?;
            let ended = self.attempt(|board| board.end_within(&task.id, &name, reason, actor));
            match ended {
                Ok(()) => {}
                // The end of this task was decided in the meantime.
                Err(Error::Conflict { .. } | Error::Illegal { .. }) => continue,
                Err(error) => return Err(error),
            }
            if self.expect_task(&task.id)?.current_run_id.is_some() {
                ends.ending.push(task.id.clone());
            }
            ends.ended.push(task.id);
        }
        let payload = json!({ "reason": reason, "tasks": ends.ended.len(), "ending": ends.ending.len() });
        self.append(&first, None, EventKind::MissionCancelled, payload, &actor.label())?;
        Ok(ends)
    }

    pub(super) fn end_within(
        &mut self,
        id: &TaskId,
        mission: &str,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<(), Error> {
        for child in self.tx.open_children(id)? {
            if self.expect_task(&child)?.mission() != mission {
                return self.cancel(id, reason, actor).map(drop);
            }
        }
        self.archive(id, Detach::Unlink, actor).map(drop)
    }

    /// Answers the question of a mission at a limit, if there is one: the mission gets the limit once more, or is
    /// cancelled.
    pub(super) fn answer_mission(
        &mut self,
        task: &Task,
        reply: &str,
        actor: &Actor,
    ) -> Result<Option<Answered>, Error> {
        let Some(question) = question_of(task, &self.holds()?) else { return Ok(None) };
        let Some(answer) = question.resolve(reply) else {
            return Err(super::answer::no_such_choice(&question, reply));
        };
        let number = question.choices.iter().position(|choice| *choice == answer).map(|at| at + 1);
        let payload = json!({ "answer": answer, "choice": number });
        self.append(task, None, EventKind::Answered, payload, &actor.label())?;
        if answer == mission::STOP {
            self.cancel_mission(&task.id, Some(&answer), actor)?;
        } else {
            // The question was about the limit, so a pause by hand stays.
            let at_limit =
                |hold: &Hold| hold.kind == HoldKind::Limit && hold.on() == mission_target(&task.id);
            let asked = self.holds()?.into_iter().filter(at_limit).collect();
            self.end_all(asked, Some(&answer), actor)?;
        }
        Ok(Some(Answered { task: self.expect_task(&task.id)?, answer }))
    }
}

impl super::view::View<'_> {
    /// Returns the question of a mission, by its first task; none for any other task, and for a mission at no limit.
    pub(super) fn mission_question(&self, task: &Task) -> Result<Option<Question>, Error> {
        Ok(question_of(task, &self.holds()?))
    }

    /// Returns the command that answers the question of a task's mission, if it asks.
    pub(super) fn asking_mission_of(&self, task: &Task) -> Result<Option<String>, Error> {
        let Some(first) = self.first_task(task.mission())?.filter(|first| first.tenant == task.tenant) else {
            return Ok(None);
        };
        Ok(self.mission_question(&first)?.map(|question| question.command(&first.id)))
    }

    /// Returns true if a task waits for an approval, about which `approve` and `deny` decide.
    pub fn is_requesting(&self, task: &Task) -> bool {
        task.block_kind == Some(BlockKind::Approval) && !task.is_cancelled()
    }

    /// Returns true if `answer` can answer a question of the task: its own, or its mission's.
    pub fn is_asking(&self, task: &Task) -> Result<bool, Error> {
        let is_input_block = task.block_kind == Some(BlockKind::NeedsInput) && !task.is_cancelled();
        Ok(is_input_block || self.mission_question(task)?.is_some())
    }

    /// Returns the first task of the mission that a task belongs to, for a caller who may see it.
    pub(super) fn mission_of(&self, id: &TaskId, actor: &Actor) -> Result<Task, Error> {
        let task = self.task_for(id, actor)?;
        match self.first_task(task.mission())? {
            Some(first) if first.tenant == task.tenant => Ok(first),
            Some(_) | None => Err(Error::conflict(
                format!("the first task of the mission of {id}, {}, does not exist any more", task.mission()),
                "act on its tasks one by one: `supervisor list`",
            )),
        }
    }
}

/// Returns the question of a mission to its creator, by the first task; none for a mission at no limit.
pub(super) fn question_of(first: &Task, holds: &[Hold]) -> Option<Question> {
    let is_its = |hold: &&Hold| hold.kind == HoldKind::Limit && hold.on() == mission_target(&first.id);
    holds.iter().find(is_its).map(|hold| mission::question(&first.title, &hold.reason))
}

/// Returns the hold target of a mission.
pub(super) fn mission_target(first: &TaskId) -> HoldOn {
    HoldOn { scope: HoldScope::Mission, name: first.to_string() }
}
