//! Reads missions: their progress, use and files, and the tasks that wait for a person.

use std::collections::{BTreeMap, BTreeSet};

use super::mission_control::{mission_target, question_of};
use super::view::View;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::hold::{Hold, HoldKind, HoldScope};
use crate::model::id::{Profile, TaskId, Tenant};
use crate::model::limits;
use crate::model::mission::{
    AskingMission, Mission, MissionDetails, MissionFile, MissionLimits, MissionState, MissionTask,
};
use crate::model::outcome::BlockKind;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::verdict::Question;
use crate::rules::mission;

/// Longest summary or notes of each task that a mission shows, in characters.
const TEXT: usize = 400;

impl View<'_> {
    /// Returns the missions that a caller may see, newest first, and true if there are more.
    pub fn missions(
        &self,
        tenant: Option<&Tenant>,
        limits: &MissionLimits,
        actor: &Actor,
    ) -> Result<(Vec<Mission>, bool), Error> {
        let only = actor.tenant.as_ref().or(tenant);
        let most = limits::REPLY_ROWS;
        let mut firsts = self.tx.list_missions(only, most.saturating_add(1))?;
        let more = firsts.len() > most as usize;
        firsts.truncate(most as usize);
        let holds = self.holds()?;
        let missions = firsts.iter().map(|first| self.mission_at(first, limits, &holds));
        Ok((missions.collect::<Result<_, _>>()?, more))
    }

    /// Returns up to `limit` missions at a limit with their questions, the latest question first, as far as the caller
    /// may see them. `assignee` selects by the assignee of the first task.
    pub fn asking_missions(
        &self,
        tenant: Option<&Tenant>,
        assignee: Option<&Profile>,
        limit: usize,
        actor: &Actor,
    ) -> Result<Vec<AskingMission>, Error> {
        let only = actor.tenant.as_ref().or(tenant);
        let is_limit = |hold: &Hold| hold.kind == HoldKind::Limit && hold.scope == HoldScope::Mission;
        let mut holds: Vec<Hold> = self.holds()?.into_iter().filter(is_limit).collect();
        holds.sort_by_key(|hold| std::cmp::Reverse(hold.created_at));
        let mut asking = Vec::new();
        for Hold { name, reason, created_at: since, .. } in holds {
            if asking.len() == limit {
                break;
            }
            let Some(first) = self.first_task(&name)? else { continue };
            let is_seen = only.is_none_or(|tenant| first.tenant.as_ref() == Some(tenant))
                && assignee.is_none_or(|profile| first.assignee.as_ref() == Some(profile));
            if is_seen {
                let question = mission::question(&first.title, &reason);
                let Task { id, title, tenant, assignee, priority, .. } = first;
                asking.push(AskingMission { id, title, tenant, assignee, priority, question, since });
            }
        }
        Ok(asking)
    }

    /// Returns the mission of a task with all its tasks.
    pub fn mission(
        &self,
        id: &TaskId,
        limits: &MissionLimits,
        actor: &Actor,
    ) -> Result<MissionDetails, Error> {
        let first = self.mission_of(id, actor)?;
        let mission = self.mission_at(&first, limits, &self.holds()?)?;
        let most = limits::REPLY_ROWS;
        let mut tasks = self.tx.tasks_of_mission(first.id.as_str(), most.saturating_add(1))?;
        let more = tasks.len() > most as usize;
        tasks.truncate(most as usize);
        let known: BTreeSet<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
        let tree = tasks.into_iter().map(|task| self.mission_task(task, &first.id, &known));
        let tree = tree.collect::<Result<_, _>>()?;
        Ok(MissionDetails { mission, tree, more, profiles: self.tx.proposed_profiles(&first.id)? })
    }

    fn mission_at(&self, first: &Task, limits: &MissionLimits, holds: &[Hold]) -> Result<Mission, Error> {
        // Without a row, no worker has divided the task, and the use is computed from its own runs.
        let used = match self.tx.mission_now(first.id.as_str(), self.now())? {
            Some(used) => used,
            None => self.tx.use_of_undivided(first.id.as_str(), self.now())?.0,
        };
        let counts = self.tx.count_mission(first.id.as_str())?;
        let by_status: BTreeMap<Status, u64> =
            counts.iter().map(|(status, count, _)| (*status, *count)).collect();
        let done: u64 = counts.iter().map(|(.., done)| done).sum();
        // An unfinished task that was archived will not be done.
        let given_up = |(status, count, done): &(Status, u64, u64)| {
            if *status == Status::Archived { count.saturating_sub(*done) } else { 0 }
        };
        let tasks = by_status.values().sum::<u64>().saturating_sub(counts.iter().map(given_up).sum());
        let on_it = mission_target(&first.id);
        let paused: Vec<&str> =
            holds.iter().filter(|hold| hold.on() == on_it).map(|hold| hold.reason.as_str()).collect();
        // The order matters: a finished mission may still have a hold, and a paused mission may have ready tasks.
        let is_over = done == tasks;
        let moves = [Status::Running, Status::Ready, Status::Scheduled, Status::Review];
        let state = if is_over && first.is_done() {
            MissionState::Done
        } else if is_over {
            MissionState::Cancelled
        } else if !paused.is_empty() {
            MissionState::Paused
        } else if moves.iter().any(|status| by_status.contains_key(status)) {
            MissionState::Active
        } else {
            MissionState::Waiting
        };
        Ok(Mission {
            id: first.id.clone(),
            title: first.title.clone(),
            tenant: first.tenant.clone(),
            created_by: first.created_by.clone(),
            created_at: first.created_at,
            state,
            tasks,
            done,
            by_status,
            usage: mission::balance(&used, limits),
            paused: (!paused.is_empty()).then(|| paused.join("; ")),
            question: question_of(first, holds),
        })
    }

    fn mission_task(
        &self,
        task: Task,
        first: &TaskId,
        known: &BTreeSet<TaskId>,
    ) -> Result<MissionTask, Error> {
        let under = task.creator_task.clone().filter(|above| known.contains(above));
        let under = under.or_else(|| Some(first.clone())).filter(|_| task.id != *first);
        let command = command_for(&task);
        let needs = command.is_some().then(|| question_to_person(&task));
        let artifacts = self.attachments(&task.id)?.into_iter();
        let artifacts =
            artifacts.map(|file| MissionFile { id: file.id, filename: file.filename, size: file.size });
        let summary = self.last_completed_run(&task.id)?.and_then(|run| run.summary);
        let short = |text: String| text.chars().take(TEXT).collect::<String>();
        Ok(MissionTask {
            under,
            after: self.parents(&task.id)?,
            needs,
            command,
            summary: summary.map(short),
            notes: task.notes.map(short),
            artifacts: artifacts.collect(),
            id: task.id,
            title: task.title,
            status: task.status,
            assignee: task.assignee,
        })
    }
}

/// Returns the question of a task to a person.
fn question_to_person(task: &Task) -> Question {
    let reason = task.block_reason.clone().unwrap_or_else(|| task.title.clone());
    task.question.clone().unwrap_or_else(|| Question { text: reason, ..Question::default() })
}

/// Returns the command by which a person lets a task go on; none for a task that waits for no person.
fn command_for(task: &Task) -> Option<String> {
    let id = &task.id;
    if !task.waits_for_a_person() {
        return None;
    }
    Some(match (task.status, task.block_kind) {
        (Status::Blocked, Some(BlockKind::NeedsInput)) => question_to_person(task).command(id),
        (Status::Triage, _) => format!("supervisor promote {id}"),
        (Status::Blocked, Some(BlockKind::Approval)) | (Status::Review, _) => {
            format!("supervisor approve {id}")
        }
        (
            Status::Blocked
            | Status::Todo
            | Status::Scheduled
            | Status::Ready
            | Status::Running
            | Status::Done
            | Status::Archived,
            _,
        ) => format!("supervisor unblock {id}"),
    })
}
