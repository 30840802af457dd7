//! Rules for links between tasks.

use std::time::Duration;

use crate::model::actor::{Actor, ActorKind};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::limits;
use crate::model::outcome::StopReason;
use crate::model::run::Run;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::verdict::VerdictKind;

/// Treatment of a child that is at work when it gets a parent that is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtWork {
    /// A run up to this age is taken back. With an older run the link is refused.
    TakeBackWithin(Duration),
    /// The run is taken back, and a finished child goes back into the queue. Only a person may ask for this.
    TakeBack,
}

/// Refuses a link between tasks of different tenants, and a link from a task to itself.
pub(crate) fn together(above: &Task, below: &Task) -> Result<(), Error> {
    let (parent, child) = (&above.id, &below.id);
    if above.tenant != below.tenant {
        return Err(Error::invalid(
            "parent",
            format!("{parent} and {child} belong to different tenants"),
            "links stay within one tenant",
        ));
    }
    if parent == child {
        return Err(Error::conflict(
            format!("{child} cannot wait for itself"),
            "name the task that is to be done first, then the one that waits for it",
        ));
    }
    Ok(())
}

/// Returns the error for a parent of another tenant.
pub(crate) fn other_tenant(parent: &TaskId) -> Error {
    Error::invalid(
        "parents",
        format!("{parent} belongs to another tenant"),
        "links stay within one tenant; leave the tenant out to take that of the parents",
    )
}

/// Returns the error for a link that would close a cycle.
pub(crate) fn circle(parent: &TaskId, child: &TaskId) -> Error {
    Error::conflict(
        format!("{child} is already above {parent}: the link would close a cycle"),
        format!("unlink one of the links between them first: `supervisor show {child}`"),
    )
}

/// Returns the error for too many parents.
pub(crate) fn too_many_parents(count: usize) -> Error {
    let limit = limits::PARENTS;
    Error::invalid("parents", format!("{count} parents, the limit is {limit}"), "link them in stages")
}

/// Returns the error for too many children. All children are promoted in one transaction.
pub(crate) fn too_many_children(parent: &TaskId) -> Error {
    let message = format!("{parent} has {} children, which is the limit", limits::CHILDREN);
    Error::invalid(
        "parents",
        message,
        "put a task in between that waits for this one, and let others wait for it",
    )
}

/// Refuses a parent that will never be done: a task archived unfinished, or a task whose open run leads there.
pub(crate) fn awaitable(parent: &Task, run: Option<&Run>) -> Result<(), Error> {
    let verdict = run.and_then(|run| run.verdict.as_ref()).map(|verdict| verdict.kind());
    let is_over = parent.status == Status::Archived || verdict == Some(VerdictKind::Archive);
    if parent.is_done() || !is_over {
        return Ok(());
    }
    Err(Error::conflict(
        format!("{} was archived without being done", parent.id),
        "it will never be done, so nothing can wait for it; leave it out, or create a new task",
    ))
}

/// Refuses a child that cannot wait for this parent any more. `run` is the open run of the child. Returns the run that
/// has to be taken back for the link.
/// A task starts within milliseconds of its commit, so a link that follows `create` finds its child running. Such
/// a child is taken back while little of its work is lost; a child that has run for longer keeps it.
pub(crate) fn may_wait<'a>(
    above: &Task,
    below: &Task,
    run: Option<&'a Run>,
    at_work: AtWork,
    actor: &Actor,
    now: Timestamp,
) -> Result<Option<&'a Run>, Error> {
    let child = &below.id;
    let take_back = format!("`supervisor link --reclaim {} {child}`", above.id);
    match below.status {
        Status::Archived => {
            return Err(Error::conflict(
                format!("{child} is archived and can no longer wait"),
                "create a new task",
            ));
        }
        Status::Done if above.is_done() || at_work == AtWork::TakeBack => return Ok(None),
        Status::Done => {
            return Err(Error::conflict(
                format!("{child} is done and can no longer wait"),
                format!("to run it again after {}: {take_back}", above.id),
            ));
        }
        Status::Review if !above.is_done() => {
            return Err(Error::conflict(
                format!("the work on {child} is under review and can no longer wait"),
                format!("send it back first: `supervisor request-changes {child} '<what>'`"),
            ));
        }
        Status::Triage
        | Status::Todo
        | Status::Scheduled
        | Status::Ready
        | Status::Running
        | Status::Review
        | Status::Blocked => {}
    }
    // A worker may let its own task wait, so its own run is not taken back.
    let own = actor.run.as_ref().is_some_and(|own| own.task == *child);
    let Some(run) = run.filter(|_| !above.is_done() && !own) else { return Ok(None) };
    // A run that ends for another reason cannot be taken back for a link.
    if let Some(verdict) = &run.verdict {
        let verdict = verdict.kind();
        return Err(Error::conflict(
            format!("run {} of {child} has its verdict already ({verdict}) and is ending", run.id),
            format!("when it has ended: {take_back}"),
        ));
    }
    if let Some(reason) = run.stop_reason.filter(|reason| *reason != StopReason::Reclaimed) {
        return Err(Error::conflict(
            format!("run {} of {child} is being ended ({reason})", run.id),
            format!("link it when it has ended: `supervisor show {child}`"),
        ));
    }
    let age = now.since(run.started_at);
    match at_work {
        AtWork::TakeBackWithin(limit) if age > limit && run.stop_reason.is_none() => {
            let way_out = match actor.kind {
                ActorKind::Worker => "comment on it, or ask a person to take it back".to_owned(),
                ActorKind::Person | ActorKind::System => format!("take its run back with {take_back}"),
            };
            Err(Error::conflict(
                format!(
                    "{child} has been running for {} s, too long for a link to take it back",
                    age.as_secs()
                ),
                way_out,
            ))
        }
        AtWork::TakeBackWithin(_) | AtWork::TakeBack => Ok(Some(run)),
    }
}
