//! Counts the use of missions, and enforces their limits. A mission at a limit is held as a whole, and a person is
//! asked about it.
//!
//! See decision 0100.

use std::time::Duration;

use serde_json::json;

use super::view::View;
use super::{Board, SYSTEM};
use crate::model::actor::Actor;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::hold::{Hold, HoldKind, HoldOn, HoldScope, NewHold, Within};
use crate::model::id::{Profile, TaskId};
use crate::model::missing::Missing;
use crate::model::mission::{MissionLimit, MissionLimits, Used};
use crate::model::proposal::Proposal;
use crate::model::run::Run;
use crate::model::task::Task;
use crate::model::verdict::{Handoff, Question};
use crate::rules::authority;
use crate::rules::mission::{self, Reached};
use crate::rules::proposal;
use crate::store::holds::By;

impl Board<'_> {
    /// Counts a worker's new task in its mission. Refuses a task beyond the limits of the mission, and a task that
    /// would give the work back to a profile from which it came. `own` is the task of the worker.
    pub(super) fn join_mission(
        &self,
        own: &Task,
        run: &Run,
        assignee: Option<&Profile>,
    ) -> Result<(), Error> {
        self.delegates_onward(&own.id, run, assignee)?;
        let name = own.mission();
        self.tx.open_mission(name)?;
        self.count_task(name)
    }

    /// Counts a further task of a mission. Refuses the task if the mission has reached its limit on tasks.
    pub(super) fn count_task(&self, name: &str) -> Result<(), Error> {
        let used = self.tx.mission(name)?.unwrap_or_default();
        mission::room_for_task(name, &used, &self.quotas.mission)?;
        self.tx.add_task_to_mission(name)?;
        self.pause_where_spent(name, &used, None)
    }

    /// Pauses the mission of a task that becomes unfinished again, if a limit of the mission is used up.
    pub(super) fn pause_again(&self, id: &TaskId) -> Result<(), Error> {
        let name = self.tx.mission_of(id)?.unwrap_or_default();
        match self.tx.mission(&name)? {
            Some(used) => self.pause_where_spent(&name, &used, None),
            None => Ok(()),
        }
    }

    fn pause_where_spent(&self, name: &str, used: &Used, run: Option<&Run>) -> Result<(), Error> {
        match mission::spent(used, &self.quotas.mission) {
            Some(reached) => self.pause_mission(name, reached, run),
            None => Ok(()),
        }
    }

    /// Refuses an assignee to which the work of a run would return through another profile.
    pub(super) fn delegates_onward(
        &self,
        own: &TaskId,
        run: &Run,
        assignee: Option<&Profile>,
    ) -> Result<(), Error> {
        let mut makers: Vec<Profile> = run.profile.iter().cloned().collect();
        makers.extend(self.tx.makers_of(own)?);
        mission::delegates_onward(&makers, assignee)
    }

    /// Adds the use of a run since the last call to its mission, and pauses the mission if a limit is used up.
    pub(super) fn charge_mission(&self, run: &Run, time: Duration, cost_micros: u64) -> Result<(), Error> {
        let Some(name) = self.tx.mission_of(&run.task_id)? else {
            return Err(Error::missing(Missing::Task, &run.task_id));
        };
        let used = match self.tx.add_to_mission(&name, time, cost_micros)? {
            Some(used) => used,
            // The task has created no tasks, so it is not stored as a mission. If its agent reports its use, it
            // becomes a mission when it reaches a limit.
            None => match self.tx.use_of_undivided(&name, self.now())? {
                (used, true) => used,
                (_, false) => return Ok(()),
            },
        };
        if mission::spent(&used, &self.quotas.mission).is_none() {
            return Ok(());
        }
        self.tx.open_mission(&name)?;
        // A finished mission asks no question until it has unfinished tasks again.
        if self.tx.is_mission_over(&name)? {
            return Ok(());
        }
        self.pause_where_spent(&name, &used, Some(run))
    }

    /// Pauses the missions whose open runs have used up the remaining run time.
    pub(super) fn pause_missions_at_work(&self) -> Result<(), Error> {
        for (name, used, _) in self.tx.missions_at_work(self.now())? {
            if let Some(reached) = mission::reached(MissionLimit::Runtime, &used, &self.quotas.mission) {
                self.pause_mission(&name, reached, None)?;
            }
        }
        Ok(())
    }

    /// Pauses the mission of a worker whose request for a task was refused at the limit on tasks, and asks a person.
    /// Does nothing for a mission below its limit, or already paused.
    pub fn ask_for_more_tasks(&mut self, actor: &Actor) -> Result<(), Error> {
        let Some(run) = self.live_run(actor)? else { return Ok(()) };
        let task = self.expect_task(&run.task_id)?;
        self.ask_for_tasks(task.mission(), Some(&run))
    }

    /// Pauses the mission of a task as [`Board::ask_for_more_tasks`] does, after a person's request for a task was
    /// refused. Does nothing if the first task of the mission belongs to another tenant.
    pub fn ask_for_more_tasks_in(&mut self, id: &TaskId, actor: &Actor) -> Result<(), Error> {
        authority::person(actor, "ask for more tasks of a mission")?;
        let task = self.task_for(id, actor)?;
        match self.first_task(task.mission())? {
            Some(first) if first.tenant == task.tenant => self.ask_for_tasks(first.id.as_str(), None),
            Some(_) | None => Ok(()),
        }
    }

    fn ask_for_tasks(&self, name: &str, run: Option<&Run>) -> Result<(), Error> {
        let Some(used) = self.tx.mission(name)? else { return Ok(()) };
        match mission::reached(MissionLimit::Tasks, &used, &self.quotas.mission) {
            Some(reached) => self.pause_mission(name, reached, run),
            None => Ok(()),
        }
    }

    /// Pauses the mission of a worker as [`Board::ask_for_more_tasks`] does, after its request for a task was refused
    /// at the limit on depth.
    pub fn ask_for_more_depth(&mut self, actor: &Actor) -> Result<(), Error> {
        let Some(run) = self.live_run(actor)? else { return Ok(()) };
        let task = self.expect_task(&run.task_id)?;
        let name = task.mission();
        let Some(used) = self.tx.mission(name)? else { return Ok(()) };
        let wanted = task.lineage.depth.saturating_add(1);
        let Some(reason) = mission::too_deep(wanted, &used, &self.quotas.mission) else { return Ok(()) };
        self.tx.want_depth(name, wanted)?;
        self.pause_mission_for(name, &reason, Some(&run))
    }

    /// Pauses the mission of a worker whose proposal has too many tasks, and asks a person. Does nothing for a mission
    /// with enough tasks left, or already paused.
    pub fn ask_for_proposed_tasks(
        &mut self,
        id: &TaskId,
        handoff: &Handoff,
        actor: &Actor,
    ) -> Result<(), Error> {
        let Some(run) = self.live_run(actor)?.filter(|run| run.task_id == *id) else { return Ok(()) };
        let Some(proposal) = self.tx.proposal(id)? else { return Ok(()) };
        self.ask_for_room(&proposal, handoff, &run)
    }

    /// Pauses the mission of a proposal with too many tasks, as [`Board::ask_for_proposed_tasks`] does, also for a run
    /// that has ended.
    pub(super) fn ask_for_room(
        &self,
        proposal: &Proposal,
        handoff: &Handoff,
        run: &Run,
    ) -> Result<(), Error> {
        let Ok(proposed) = proposal::read(proposal, handoff) else { return Ok(()) };
        let subject = self.expect_task(&proposal.subject)?;
        let name = subject.mission();
        let Some(used) = self.tx.mission(name)? else { return Ok(()) };
        let wanted = proposed.tasks.len() as u64;
        let Some(reason) = mission::beyond(wanted, &used, &self.quotas.mission) else { return Ok(()) };
        self.tx.want_tasks(name, wanted)?;
        self.pause_mission_for(name, &reason, Some(run))
    }

    /// Returns the limits of a task's mission.
    pub(super) fn limits_of(&self, task: &Task) -> Result<MissionLimits, Error> {
        let used = self.tx.mission(task.mission())?.unwrap_or_default();
        Ok(used.caps.over(&self.quotas.mission))
    }

    fn pause_mission(&self, name: &str, reached: Reached, run: Option<&Run>) -> Result<(), Error> {
        self.pause_mission_for(name, &reached.to_string(), run)
    }

    /// Pauses a mission and asks a person about it. Does nothing if a limit pauses the mission already.
    pub(super) fn pause_mission_for(&self, name: &str, reason: &str, run: Option<&Run>) -> Result<(), Error> {
        let on = HoldOn { scope: HoldScope::Mission, name: name.to_owned() };
        let is_paused = |hold: &Hold| hold.on() == on && hold.kind == HoldKind::Limit;
        if self.holds()?.iter().any(is_paused) {
            return Ok(());
        }
        let new = NewHold { kind: HoldKind::Limit, reason: reason.to_owned(), until: None };
        self.place_hold(&on, &new, By { label: SYSTEM, within: &Within::Board, run })?;
        let Some(first) = self.first_task(name)? else { return Ok(()) };
        let Question { text, choices, .. } = mission::question(&first.title, &new.reason);
        let payload = json!({ "question": text, "choices": choices, "reason": new.reason });
        self.append(&first, None, EventKind::MissionAsked, payload, SYSTEM)
    }

    /// Grants a mission the limit once more for each used-up resource, and enough for the proposal or the depth that
    /// was refused.
    pub(super) fn grant_mission(&self, name: &str) -> Result<(), Error> {
        let Some(used) = self.tx.mission_now(name, self.now())? else { return Ok(()) };
        self.tx.grant_mission(name, &mission::granted(used, &self.quotas.mission))
    }

    /// Returns the target of a hold as the board stores it: a mission may be named by any of its tasks, and is stored
    /// by its first task.
    pub(super) fn named_on_board(&self, on: &HoldOn) -> Result<HoldOn, Error> {
        let task: Option<TaskId> = on.name.parse().ok().filter(|_| on.scope == HoldScope::Mission);
        let task = task.map(|id| self.task(&id)).transpose()?.flatten();
        let name = task.map_or_else(|| on.name.clone(), |task| task.mission().to_owned());
        Ok(HoldOn { name, ..on.clone() })
    }
}

impl View<'_> {
    /// Returns the first task of a mission, if it still exists.
    pub(super) fn first_task(&self, name: &str) -> Result<Option<Task>, Error> {
        name.parse().ok().map(|id: TaskId| self.task(&id)).transpose().map(Option::flatten)
    }

    /// Returns the earliest time at which the open runs of a mission use up its run time, over all missions that no
    /// limit pauses.
    pub fn next_mission_limit(&self, limits: &MissionLimits) -> Result<Option<Timestamp>, Error> {
        let now = self.now();
        let at_work = self.tx.missions_at_work(now)?;
        if at_work.is_empty() {
            return Ok(None);
        }
        let holds = self.holds()?;
        let is_paused = |name: &str| {
            let is_its = |hold: &Hold| hold.scope == HoldScope::Mission && hold.name == name;
            holds.iter().any(|hold| hold.kind == HoldKind::Limit && is_its(hold))
        };
        let running = at_work.iter().filter(|(name, ..)| !is_paused(name));
        Ok(running.map(|(_, used, runs)| now.after(mission::time_left(used, limits, *runs))).min())
    }
}
