//! Mentions: creates a task for each profile that a comment names.
//!
//! A table has the task of each comment and profile, so a comment acts once. An idempotency key of the comment and
//! the name could be taken by any caller before. Only profiles are meant: a comment must not become the script of a
//! lane.

use serde_json::json;

use super::Board;
use crate::model::actor::{Actor, ActorKind};
use crate::model::error::{Error, ErrorCode};
use crate::model::event::EventKind;
use crate::model::id::{Profile, TaskId, Tenant};
use crate::model::note::{Comment, Mention};
use crate::model::task::{Lineage, NewTask};
use crate::rules::mention;

/// Longest part of a comment in the title of a task, in characters.
const SUBJECT: usize = 120;

impl Board<'_> {
    /// Creates a task for each known profile that a comment mentions, once per profile. For a task that may not be made,
    /// the reply has the reason, and the comment stays.
    pub fn mention(
        &mut self,
        comment: &Comment,
        known: impl Fn(&Profile) -> bool,
        policy: impl Fn(&Tenant) -> Option<String>,
        actor: &Actor,
    ) -> Result<Vec<Mention>, Error> {
        let mut made = Vec::new();
        let tenant = self.task_for(&comment.task_id, actor)?.tenant;
        // The policy of a worker's task follows from its run.
        let policy = tenant.as_ref().filter(|_| actor.kind != ActorKind::Worker).and_then(policy);
        let mut is_full = false;
        let (asked, passed) = mention::mentioned_and_passed(&comment.body, known);
        for profile in asked {
            let outcome = self.attempt(|board| board.mention_one(comment, &profile, policy.clone(), actor));
            made.push(match outcome {
                Ok(task) => Mention { profile, task: Some(task), refused: None },
                Err(error @ Error::Storage { .. }) => return Err(error),
                Err(error) => {
                    is_full |= error.code() == ErrorCode::Exhausted;
                    Mention { profile, task: None, refused: Some(error.to_string()) }
                }
            });
        }
        made.extend(passed.into_iter().map(beyond));
        if is_full && actor.kind == ActorKind::Person {
            self.ask_for_more_tasks_in(&comment.task_id, actor)?;
        } else if is_full {
            self.ask_for_more_tasks(actor)?;
            self.ask_for_more_depth(actor)?;
        }
        Ok(made)
    }

    fn mention_one(
        &mut self,
        comment: &Comment,
        profile: &Profile,
        policy: Option<String>,
        actor: &Actor,
    ) -> Result<TaskId, Error> {
        if let Some(task) = self.tx.mention(comment.id, profile)? {
            return Ok(task);
        }
        let on = self.task_for(&comment.task_id, actor)?;
        let subject = comment.body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let subject = subject.chars().filter(|c| !c.is_control()).take(SUBJECT).collect::<String>();
        // A worker's task belongs to the worker's own mission.
        let mission = (actor.kind != ActorKind::Worker).then(|| on.mission().to_owned());
        let new = NewTask {
            title: format!("{} mentions {profile} on {}: {subject}", comment.author, on.id),
            body: Some(comment.body.clone()),
            assignee: Some(profile.clone()),
            tenant: on.tenant.clone(),
            policy,
            lineage: Lineage { mission, ..Lineage::default() },
            ..NewTask::default()
        };
        let task = self.create(new, actor)?.task;
        self.tx.put_mention(comment.id, profile, &task.id)?;
        let payload = json!({ "comment": comment.id, "profile": profile, "task": task.id });
        let run = actor.run.as_ref().map(|own| own.run);
        self.append(&on, run, EventKind::Mentioned, payload, &actor.label())?;
        Ok(task.id)
    }
}

/// Returns the refusal of a profile that a text mentions beyond the limit on mentions.
pub(super) fn beyond(profile: Profile) -> Mention {
    let refused =
        format!("a text asks at most {} profiles; mention {profile} in another one", mention::MENTIONS);
    Mention { profile, task: None, refused: Some(refused) }
}
