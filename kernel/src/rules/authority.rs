//! Permissions of workers: their own run, and their own tenant within its mission.

use crate::model::actor::{Actor, ActorKind, RunRef, WorkerRole};
use crate::model::error::Error;
use crate::model::id::{RunId, TaskId, Tenant};
use crate::model::missing::Missing;
use crate::model::mission::MissionLimits;
use crate::model::outcome::StopReason;
use crate::model::run::{Holder, Purpose, Run};
use crate::model::task::{NewTask, SCRATCH, Task};
use crate::rules::mission;
use crate::rules::turns;

/// Refuses a caller that does not see the tenant of the task. To such a caller the task does not exist.
pub(crate) fn may_see(actor: &Actor, task: &Task) -> Result<(), Error> {
    let limited = actor.kind == ActorKind::Worker || actor.tenant.is_some();
    if limited && actor.tenant != task.tenant { Err(Error::missing(Missing::Task, &task.id)) } else { Ok(()) }
}

/// Returns the run that a worker acts for; none for any other caller.
pub(crate) fn spoken_for(actor: &Actor) -> Result<Option<&RunRef>, Error> {
    if actor.kind == ActorKind::Worker { worker_run(actor).map(Some) } else { Ok(None) }
}

/// Refuses a worker whose run has ended or was taken back; returns the run otherwise.
pub(crate) fn live(reference: &RunRef, run: Option<Run>) -> Result<Run, Error> {
    match run {
        Some(run) if run.ended_at.is_none() && run.task_id == reference.task => match run.stop_reason {
            Some(StopReason::Reclaimed | StopReason::Cancelled | StopReason::Kill) => Err(Error::forbidden(
                format!(
                    "run {} of {} is being ended: its task was taken back",
                    reference.run, reference.task
                ),
                "stop working",
            )),
            Some(StopReason::Verdict | StopReason::Preempted | StopReason::Stalled) | None => Ok(run),
        },
        Some(_) | None => Err(Error::forbidden(
            format!("run {} of {} has ended: its token is no longer valid", reference.run, reference.task),
            "stop working; what was not reported before the end is kept in the log",
        )),
    }
}

fn worker_run(actor: &Actor) -> Result<&RunRef, Error> {
    actor
        .run
        .as_ref()
        .ok_or_else(|| Error::forbidden("a worker without a run", "use the token that the run was given"))
}

/// Refuses a worker's act that only people may do.
pub(crate) fn person(actor: &Actor, what: &str) -> Result<(), Error> {
    match actor.kind {
        ActorKind::Person | ActorKind::System => Ok(()),
        ActorKind::Worker => Err(Error::forbidden(
            format!("a worker may not {what}"),
            "comment on the task, or block your own with a question to a person",
        )),
    }
}

/// Refuses a worker that directs a task. Only an orchestrator may, and only for tasks that its own task has made.
/// An orchestrator directs only tasks that its own task has made: with a right over its whole tenant, a misled
/// one could stop all work there. It approves nothing.
pub(crate) fn may_direct(actor: &Actor, task: &Task, what: &str) -> Result<(), Error> {
    if actor.kind != ActorKind::Worker || actor.role != WorkerRole::Orchestrator {
        return person(actor, what);
    }
    let own_run = worker_run(actor)?;
    if task.creator_task.as_ref() == Some(&own_run.task) {
        Ok(())
    } else {
        Err(Error::forbidden(
            format!("an orchestrator may {what} only if its own task {} has made it", own_run.task),
            format!("comment on {} instead", task.id),
        ))
    }
}

/// Refuses a worker that reports about another task, or about another run than its own.
pub(crate) fn own_task(actor: &Actor, task: &TaskId, run: Option<RunId>) -> Result<(), Error> {
    if actor.kind != ActorKind::Worker {
        return Ok(());
    }
    let own_run = worker_run(actor)?;
    if own_run.task == *task && run.is_none_or(|run| run == own_run.run) {
        Ok(())
    } else {
        Err(Error::forbidden(
            format!("a worker may report only about its own task, {}", own_run.task),
            format!("comment on {task} instead"),
        ))
    }
}

/// Refuses a worker's link that would make a foreign task wait.
pub(crate) fn may_link(actor: &Actor, child: &Task) -> Result<(), Error> {
    if actor.kind != ActorKind::Worker {
        return Ok(());
    }
    let own_run = worker_run(actor)?;
    if child.id == own_run.task || child.creator_task.as_ref() == Some(&own_run.task) {
        Ok(())
    } else {
        Err(Error::forbidden(
            format!(
                "a worker may change the parents of its own task {} and of tasks that it made",
                own_run.task
            ),
            format!("comment on {} instead", child.id),
        ))
    }
}

/// Limits a new task by the run and the task of the worker that makes it, and records its origin.
pub(crate) fn bound_new_task(
    actor: &Actor,
    own: Option<(&Run, &Task)>,
    new: &mut NewTask,
    missions: &MissionLimits,
) -> Result<Option<TaskId>, Error> {
    let Some((run, own)) = own else {
        if let Some(only) = &actor.tenant {
            tenant_matches(only, new.tenant.as_ref())?;
            new.tenant = Some(only.clone());
        }
        return Ok(None);
    };
    if let (Some(wanted), own_tenant) = (&new.tenant, &own.tenant)
        && Some(wanted) != own_tenant.as_ref()
    {
        return Err(Error::forbidden(
            format!("a worker may make tasks only in its own tenant, not in {wanted}"),
            "leave the tenant out",
        ));
    }
    new.tenant.clone_from(&own.tenant);
    if ![SCRATCH, own.workspace.as_str()].contains(&new.workspace()) {
        return Err(Error::forbidden(
            format!(
                "a worker's task may work in `{SCRATCH}` or in {:?}, not in {:?}",
                own.workspace,
                new.workspace()
            ),
            "leave the workspace out",
        ));
    }
    // The policy of the run counts, not only the policy of its task: the default of another lane may be wider. An
    // orchestrator does no work under its policy, so its tasks get the policies of their assignees, unless its own task
    // names a policy. In a review, an orchestrator reads the work of another worker, so its run's policy counts as for
    // all others.
    let policy = if actor.role == WorkerRole::Orchestrator && run.purpose == Purpose::Work {
        own.policy.clone()
    } else {
        run.policy.as_ref().or(own.policy.as_ref()).cloned()
    };
    if let Some(pool) = new.pools.difference(&own.pools).next() {
        return Err(Error::forbidden(
            format!("a worker's task may name no pool that its own does not name, such as {pool}"),
            "leave the pool out; its profile and its lane name what they need",
        ));
    }
    if new.policy.is_some() && new.policy != policy {
        return Err(Error::forbidden(
            "a worker's task may have no other policy than its own",
            "leave the policy out",
        ));
    }
    if policy.is_none() && run.holder == Holder::External && new.assignee.is_some() {
        return Err(Error::forbidden(
            "the task of an external claim names no policy, so what it makes may not be given to anybody",
            "leave the assignee out, and a person assigns it; or create the task that is claimed with `--policy`",
        ));
    }
    // From here on the task is limited: its policy is the worker's, and it counts in the worker's mission.
    new.policy = policy;
    turns::bound(own, new)?;
    new.lineage.depth = own.lineage.depth.saturating_add(1);
    mission::depth(new.lineage.depth, missions)?;
    if new.lineage.mission.as_deref().is_some_and(|named| named != own.mission() && named != own.id.as_str())
    {
        return Err(Error::forbidden(
            format!("a worker's task is one of its own mission, {}", own.mission()),
            "leave the mission out",
        ));
    }
    new.lineage.mission = Some(own.mission().to_owned());
    new.client.session_id = new.client.session_id.take().or_else(|| own.client.session_id.clone());
    new.created_by = Some(actor.name.clone());
    Ok(Some(own.id.clone()))
}

fn tenant_matches(only: &Tenant, wanted: Option<&Tenant>) -> Result<(), Error> {
    match wanted {
        Some(other) if other != only => Err(Error::forbidden(
            format!("this caller may make tasks only in the tenant {only}"),
            "leave the tenant out",
        )),
        Some(_) | None => Ok(()),
    }
}
