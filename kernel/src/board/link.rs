//! Links between parents and children: who may wait for whom.

use std::time::Duration;

use serde_json::json;

use super::charge::Cost;
use super::create::too_many_parents;
use super::{Board, Effect, Settled};
use crate::board::view::View;
use crate::model::actor::{Actor, ActorKind};
use crate::model::error::Error;
use crate::model::id::TaskId;
use crate::model::limits;
use crate::model::outcome::{EndCause, Ending, StopReason};
use crate::model::quota::Bound;
use crate::model::run::{Holder, Run};
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::verdict::{Destination, VerdictKind};
use crate::rules::authority;

/// What becomes of a child that somebody works on already when it gets a parent that is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtWork {
    /// A run that is no older than this is taken back; an older one is not, and the link is refused.
    TakeBackWithin(Duration),
    /// Its run is taken back, and a child that is done goes back into the queue. A person may say so.
    TakeBack,
}

impl Board<'_> {
    /// Makes `child` wait for `parent`. A link that exists is left as it is. A child that somebody works on is taken
    /// back, which counts as no failure, and waits when its run has ended; or the link is refused.
    pub fn link(
        &mut self,
        parent: &TaskId,
        child: &TaskId,
        at_work: AtWork,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let above = self.admit(parent, actor)?;
        let below = self.admit(child, actor)?;
        authority::may_link(actor, &below)?;
        if at_work == AtWork::TakeBack {
            authority::person(actor, "take a task back")?;
        }
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
        if self.tx.is_above(child, parent)? {
            return Err(Error::conflict(
                format!("{child} is already above {parent}: the link would close a cycle"),
                format!("unlink one of the links between them first: `supervisor show {child}`"),
            ));
        }
        self.require_awaitable(&above)?;
        let run = self.require_waiting(&above, &below, at_work, actor)?;
        let label = actor.label();
        self.require_room_beneath(parent)?;
        if self.tx.has_parents(child, limits::PARENTS)? {
            return Err(too_many_parents(limits::PARENTS + 1));
        }
        if self.tx.insert_link(parent, child)? {
            self.charge(actor, Cost::one(Bound::Links))?;
            let payload = json!({ "parent": parent, "child": child });
            self.tell(&below, None, "linked", Some(payload), &label)?;
            self.regate(child, &label)?;
        }
        if below.status == Status::Done && !above.is_done() {
            let from = self.standing(child)?;
            self.move_unclaimed(child, &from, Destination::Queue, &label)?;
        }
        let Some(run) = run else { return self.settled(child, None) };
        let effect = self.take_back(&below, &run, parent, actor)?;
        Ok(Settled { task: self.expect_task(child)?, run: Some(run.id), effect })
    }

    /// Removes a link; a child that waits for nothing else goes on.
    pub fn unlink(&mut self, parent: &TaskId, child: &TaskId, actor: &Actor) -> Result<(), Error> {
        self.admit(parent, actor)?;
        let below = self.admit(child, actor)?;
        authority::may_link(actor, &below)?;
        if !self.tx.delete_link(parent, child)? {
            return Err(Error::missing("link", format!("{parent} → {child}")));
        }
        self.charge(actor, Cost::one(Bound::Links))?;
        let payload = json!({ "parent": parent, "child": child });
        self.tell(&below, None, "unlinked", Some(payload), &actor.label())?;
        self.regate(child, &actor.label())
    }

    /// Refuses another child of a task that has as many as are promoted at once.
    pub(super) fn require_room_beneath(&self, parent: &TaskId) -> Result<(), Error> {
        if !self.tx.has_children(parent, limits::CHILDREN)? {
            return Ok(());
        }
        let message = format!("{parent} has {} children, which is the limit", limits::CHILDREN);
        Err(Error::invalid(
            "parents",
            message,
            "put a task between: let it wait for this one, and others for it",
        ))
    }

    /// Refuses a parent that will never be done.
    pub(super) fn require_awaitable(&self, parent: &Task) -> Result<(), Error> {
        if parent.is_done() || (View::is_open(parent) && !self.is_being_archived(parent)?) {
            return Ok(());
        }
        Err(Error::conflict(
            format!("{} was archived without being done", parent.id),
            "it will never be done, so nothing can wait for it; leave it out, or create a new task",
        ))
    }

    /// Refuses a child that cannot wait for this parent any more. Returns the run that has to be taken back for it.
    fn require_waiting(
        &self,
        above: &Task,
        below: &Task,
        at_work: AtWork,
        actor: &Actor,
    ) -> Result<Option<Run>, Error> {
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
        let own = actor.run.as_ref().is_some_and(|own| own.task == *child);
        let Some(run) = below.current_run_id.filter(|_| !above.is_done() && !own) else { return Ok(None) };
        let run = self.expect_run(run)?;
        if let Some(verdict) = &run.verdict {
            let verdict = verdict.kind();
            return Err(Error::conflict(
                format!("run {} of {child} has its verdict already ({verdict}) and is ending", run.id),
                format!("when it has ended: {take_back}"),
            ));
        }
        match run.stop_reason {
            None | Some(StopReason::Reclaimed) => {}
            Some(reason) => {
                return Err(Error::conflict(
                    format!("run {} of {child} is being ended ({reason})", run.id),
                    format!("link it when it has ended: `supervisor show {child}`"),
                ));
            }
        }
        let age = self.now().since(run.started_at);
        match at_work {
            AtWork::TakeBackWithin(limit) if age > limit && run.stop_reason.is_none() => {
                let way_out = match actor.kind {
                    ActorKind::Worker => "comment on it, or ask a person to take it back".to_owned(),
                    ActorKind::Person | ActorKind::System => format!("take its run back with {take_back}"),
                };
                Err(Error::conflict(
                    format!(
                        "{child} has been at work for {} s: it no longer waits by a link alone",
                        age.as_secs()
                    ),
                    way_out,
                ))
            }
            AtWork::TakeBackWithin(_) | AtWork::TakeBack => Ok(Some(run)),
        }
    }

    /// Asks for the end of a run whose task has to wait for a parent.
    fn take_back(&mut self, task: &Task, run: &Run, parent: &TaskId, actor: &Actor) -> Result<Effect, Error> {
        if run.stop_reason.is_none() {
            if !self.tx.record_stop(run.id, StopReason::Reclaimed, self.now())? {
                return Err(Error::conflict(
                    format!("run {} has ended", run.id),
                    "nothing was done; try again",
                ));
            }
            let reason = format!("linked behind {parent}");
            let payload = json!({ "stop_reason": StopReason::Reclaimed, "reason": reason, "by": actor.name });
            self.tell(task, Some(run.id), "stop_requested", Some(payload), &actor.label())?;
        }
        match run.hand {
            Holder::Hand => {
                self.finish_run(run.id, Ending::new(EndCause::Stopped(StopReason::Reclaimed)))?;
                Ok(Effect::Now)
            }
            Holder::Supervisor => Ok(Effect::WhenRunEnds),
        }
    }

    fn is_being_archived(&self, task: &Task) -> Result<bool, Error> {
        let run = task.current_run_id.map(|run| self.expect_run(run)).transpose()?;
        let verdict = run.and_then(|run| run.verdict).map(|verdict| verdict.kind());
        Ok(verdict == Some(VerdictKind::Archive))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, alice, titled};
    use crate::{Detach, ErrorCode, Handoff, NewTask, Outcome};

    const MOMENTS: AtWork = AtWork::TakeBackWithin(Duration::from_secs(30));

    fn link(bench: &Bench, parent: &TaskId, child: &TaskId, at_work: AtWork) -> Result<Settled, Error> {
        let (parent, child) = (parent.clone(), child.clone());
        bench.call(move |board| board.link(&parent, &child, at_work, &alice()))
    }

    #[test]
    fn nothing_waits_for_a_parent_that_was_archived_unfinished_by_create_as_by_link() {
        let bench = Bench::new();
        let (open, archived, child) = (bench.ready(), bench.ready(), bench.ready());
        let id = archived.clone();
        bench.call(move |board| board.archive(&id, Detach::Refuse, &alice())).unwrap();

        let linked = link(&bench, &archived, &child, MOMENTS).unwrap_err();
        let parents = vec![open, archived];
        let created = bench
            .call(move |board| board.create(NewTask { parents, ..titled("waits") }, &alice()))
            .unwrap_err();

        assert_eq!((linked.code(), created.code()), (ErrorCode::Conflict, ErrorCode::Conflict));
        assert_eq!(linked.to_string(), created.to_string());
    }

    #[test]
    fn a_child_that_was_started_a_moment_ago_is_taken_back_and_waits_and_no_failure_is_counted() {
        let bench = Bench::new();
        let (one, two, child) = (bench.ready(), bench.ready(), bench.ready());
        let run = bench.start(&child);
        bench.clock.advance(Duration::from_secs(29));

        let linked = link(&bench, &one, &child, MOMENTS).unwrap();
        assert_eq!((linked.effect, linked.run), (Effect::WhenRunEnds, Some(run)));
        bench.clock.advance(Duration::from_mins(1));
        // The run is on its way out: another link finds it so, however long that takes.
        link(&bench, &two, &child, MOMENTS).unwrap();
        assert_eq!(bench.runs_to_stop().len(), 1);
        let finished = bench.finish(run, EndCause::Exited { code: 0 });

        assert_eq!((finished.outcome, finished.status), (Outcome::Reclaimed, Status::Todo));
        assert_eq!(bench.task(&child).consecutive_failures, 0);
        bench.check();
    }

    #[test]
    fn a_child_that_is_long_at_work_or_done_is_refused_with_the_way_out_which_works() {
        let bench = Bench::new();
        let (parent, child, done) = (bench.ready(), bench.ready(), bench.ready());
        let run = bench.start(&child);
        bench.clock.advance(Duration::from_secs(31));
        let id = done.clone();
        bench.call(move |board| board.complete(&id, Handoff::default(), None, &alice())).unwrap();

        for child in [&child, &done] {
            let error = link(&bench, &parent, child, MOMENTS).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Conflict);
            assert!(error.hint().unwrap().contains("supervisor link --reclaim"), "{error}");
            link(&bench, &parent, child, AtWork::TakeBack).unwrap();
        }

        assert_eq!(bench.task(&done).status, Status::Todo);
        assert_eq!(bench.finish(run, EndCause::Exited { code: 1 }).status, Status::Todo);
        bench.check();
    }

    #[test]
    fn a_run_with_its_verdict_is_not_taken_back() {
        let bench = Bench::new();
        let (parent, child) = (bench.ready(), bench.ready());
        bench.start(&child);
        let id = child.clone();
        bench.call(move |board| board.complete(&id, Handoff::default(), None, &alice())).unwrap();
        let error = link(&bench, &parent, &child, AtWork::TakeBack).unwrap_err();
        assert!(error.to_string().contains("has its verdict already (complete)"), "{error}");
    }

    #[test]
    fn a_claim_by_hand_is_taken_back_at_once() {
        let bench = Bench::new();
        let (parent, child) = (bench.ready(), bench.ready());
        let id = child.clone();
        bench.call(move |board| board.claim(&id, Duration::from_mins(5), &alice())).unwrap();
        let linked = link(&bench, &parent, &child, MOMENTS).unwrap();
        assert_eq!((linked.effect, linked.task.status), (Effect::Now, Status::Todo));
        bench.check();
    }
}
