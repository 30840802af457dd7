//! Links between parents and children: creation, removal, and their effect on the child.

use serde_json::json;

use super::charge::Cost;
use super::{Board, Effect, Settled};
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::TaskId;
use crate::model::limits;
use crate::model::missing::Missing;
use crate::model::outcome::StopReason;
use crate::model::quota::Bound;
use crate::model::run::Run;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::verdict::Destination;
use crate::rules::authority;
use crate::rules::links::{self, AtWork};

impl Board<'_> {
    /// Makes `child` wait for `parent`. An existing link stays. `at_work` decides about a running child: the link is
    /// refused, or the child is taken back without a counted failure, and waits once its run has ended.
    pub fn link(
        &mut self,
        parent: &TaskId,
        child: &TaskId,
        at_work: AtWork,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let above = self.task_for(parent, actor)?;
        let below = self.task_for(child, actor)?;
        authority::may_link(actor, &below)?;
        if at_work == AtWork::TakeBack {
            authority::person(actor, "take a task back")?;
        }
        links::together(&above, &below)?;
        if self.tx.is_above(child, parent)? {
            return Err(links::circle(parent, child));
        }
        self.require_awaitable(&above)?;
        // A running child is either refused here, or its run has to end. The last step requests the end of the run.
        let run = self.open_run_of(&below)?;
        let run = links::may_wait(&above, &below, run.as_ref(), at_work, actor, self.now())?.cloned();
        let label = actor.label();
        self.require_room_beneath(parent)?;
        if self.tx.has_parents(child, limits::PARENTS)? {
            return Err(links::too_many_parents(limits::PARENTS + 1));
        }
        if self.tx.insert_link(parent, child)? {
            self.charge(actor, Cost::one(Bound::Links))?;
            let payload = json!({ "parent": parent, "child": child });
            self.append(&below, None, EventKind::Linked, payload, &label)?;
            self.reevaluate(child, &label)?;
        }
        // A finished child reaches this step only if the caller takes it back. It runs again after the parent.
        if below.status == Status::Done && !above.is_done() {
            let from = self.state_row(child)?;
            self.move_unclaimed(child, &from, Destination::Queue, &label)?;
        }
        let Some(run) = run else { return self.settled(child, None) };
        let effect = self.take_back(&below, &run, parent, actor)?;
        Ok(Settled { task: self.expect_task(child)?, run: Some(run.id), effect })
    }

    /// Removes a link. A child without another open parent goes on.
    pub fn unlink(&mut self, parent: &TaskId, child: &TaskId, actor: &Actor) -> Result<(), Error> {
        self.task_for(parent, actor)?;
        let below = self.task_for(child, actor)?;
        authority::may_link(actor, &below)?;
        if !self.tx.delete_link(parent, child)? {
            return Err(Error::missing(Missing::Link, format!("{parent} → {child}")));
        }
        self.charge(actor, Cost::one(Bound::Links))?;
        let payload = json!({ "parent": parent, "child": child });
        self.append(&below, None, EventKind::Unlinked, payload, &actor.label())?;
        self.reevaluate(child, &actor.label())
    }

    /// Makes a task wait for the unfinished tasks that its runs have created, except tasks that wait for it. Finished
    /// tasks of the open run become parents as well, so that the next run gets their results. The links are part of a
    /// verdict: links beyond a limit are left out, and none is charged.
    pub(super) fn wait_for_created_tasks(&self, task: &Task, label: &str) -> Result<(), Error> {
        for part in self.tx.parts(&task.id, limits::PARENTS)? {
            let is_in_the_way = self.tx.is_above(&task.id, &part)?
                || self.tx.has_children(&part, limits::CHILDREN)?
                || self.require_awaitable(&self.expect_task(&part)?).is_err();
            if is_in_the_way {
                continue;
            }
            if self.tx.has_parents(&task.id, limits::PARENTS)? {
                return Ok(());
            }
            if self.tx.insert_link(&part, &task.id)? {
                let payload = json!({ "parent": part, "child": task.id, "reason": "dependency" });
                self.append(task, task.current_run_id, EventKind::Linked, payload, label)?;
            }
        }
        Ok(())
    }

    /// Returns true if a parent of a run's task is open, or was done during the run.
    pub(super) fn has_awaited_parent(&self, run: &Run) -> Result<bool, Error> {
        for parent in self.parents(&run.task_id)? {
            if self.expect_task(&parent)?.completed_at.is_none_or(|done| done >= run.started_at) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if a task that is blocked for a dependency goes on without a person: a parent is open, or was done
    /// during the present run.
    ///
    /// # Errors
    /// Fails if the task does not exist, or if the store fails.
    pub fn goes_on_by_itself(&self, id: &TaskId) -> Result<bool, Error> {
        match self.open_run_of(&self.expect_task(id)?)? {
            Some(run) => self.has_awaited_parent(&run),
            None => Ok(!self.open_parents(id)?.is_empty()),
        }
    }

    /// Refuses a parent that will never be done.
    pub(super) fn require_awaitable(&self, parent: &Task) -> Result<(), Error> {
        links::awaitable(parent, self.open_run_of(parent)?.as_ref())
    }

    /// Refuses another child for a task that has the largest number of children.
    pub(super) fn require_room_beneath(&self, parent: &TaskId) -> Result<(), Error> {
        if self.tx.has_children(parent, limits::CHILDREN)? {
            Err(links::too_many_children(parent))
        } else {
            Ok(())
        }
    }

    fn open_run_of(&self, task: &Task) -> Result<Option<Run>, Error> {
        task.current_run_id.map(|run| self.expect_run(run)).transpose()
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
            self.append(task, Some(run.id), EventKind::StopRequested, payload, &actor.label())?;
        }
        self.end_if_external(run, StopReason::Reclaimed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::{Bench, alice, titled};
    use crate::{Clock as _, Detach, EndCause, ErrorCode, Handoff, NewTask, Outcome, Timestamp, Verdict};

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
    fn no_link_joins_tenants_or_a_task_with_itself_and_nothing_that_is_archived_waits() {
        let bench = Bench::new();
        let of =
            |tenant: &str| bench.create(NewTask { tenant: Some(tenant.parse().unwrap()), ..titled("x") }).id;
        let (one, foreign, archived) = (of("acme"), of("beta"), of("acme"));
        let id = archived.clone();
        bench.call(move |board| board.archive(&id, Detach::Refuse, &alice())).unwrap();

        for (parent, child, words) in [
            (&one, &foreign, "belong to different tenants"),
            (&one, &one, "cannot wait for itself"),
            (&one, &archived, "is archived and can no longer wait"),
        ] {
            let refused = link(&bench, parent, child, AtWork::TakeBack).unwrap_err();
            assert!(refused.to_string().contains(words), "{refused}");
        }
    }

    #[test]
    fn a_child_waits_as_its_status_its_run_and_its_parent_allow() {
        let bench = Bench::new();
        let (open, child) = (bench.task(&bench.ready()), bench.ready());
        let now = bench.clock.now();
        let done = Task { status: Status::Done, completed_at: Some(now), ..open.clone() };
        let run = bench.start(&child);
        let run = bench.readers.with(|view| view.expect_run(run)).unwrap();
        let below = bench.task(&child);
        for (above, status, at_work, refusal) in [
            (&open, Status::Archived, AtWork::TakeBack, Some("is archived and can no longer wait")),
            (&open, Status::Done, MOMENTS, Some("is done and can no longer wait")),
            (&open, Status::Done, AtWork::TakeBack, None),
            (&done, Status::Done, MOMENTS, None),
            (&open, Status::Review, AtWork::TakeBack, Some("is under review and can no longer wait")),
            (&done, Status::Review, MOMENTS, None),
            (&open, Status::Blocked, MOMENTS, None),
        ] {
            let below = Task { status, ..below.clone() };
            let waits = links::may_wait(above, &below, None, at_work, &alice(), now);
            assert_eq!(waits.as_ref().err().is_some(), refusal.is_some(), "{status} {waits:?}");
            let refused_text = waits.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused_text.contains(refusal.unwrap_or_default()), "{refused_text}");
        }

        let own = Actor::worker("bob", run.id, child.clone(), None);
        let old = Run { started_at: Timestamp::from_secs(0), ..run.clone() };
        let at_the_limit =
            Run { started_at: Timestamp::from_micros(now.as_micros() - 30_000_000), ..run.clone() };
        let decided = Run { verdict: Some(Verdict::Approve), ..run.clone() };
        let stopped = |reason, run: &Run| Run { stop_reason: Some(reason), ..run.clone() };
        let (killed, reclaimed) = (stopped(StopReason::Kill, &run), stopped(StopReason::Reclaimed, &old));
        for (above, run, at_work, actor, takes_back) in [
            (&open, &run, MOMENTS, alice(), Ok(true)),
            (&done, &run, MOMENTS, alice(), Ok(false)),
            (&open, &run, MOMENTS, own, Ok(false)),
            (&open, &decided, AtWork::TakeBack, alice(), Err("has its verdict already (approve)")),
            (&open, &killed, AtWork::TakeBack, alice(), Err("is being ended (kill)")),
            (&open, &reclaimed, MOMENTS, alice(), Ok(true)),
            (&open, &at_the_limit, MOMENTS, alice(), Ok(true)),
            (&open, &old, MOMENTS, alice(), Err("too long for a link to take it back")),
            (&open, &old, AtWork::TakeBack, alice(), Ok(true)),
        ] {
            match (links::may_wait(above, &below, Some(run), at_work, &actor, now), takes_back) {
                (Ok(found), Ok(expected)) => assert_eq!(found.is_some(), expected, "{run:?}"),
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
                (found, expected) => panic!("{found:?} and not {expected:?} for {run:?}"),
            }
        }
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
        // The run is already ending. Another link accepts that, at any age of the run.
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
        bench
            .call(move |board| {
                board.claim(&id, &crate::ClaimTerms::lasting(Duration::from_mins(5)), &alice())
            })
            .unwrap();
        let linked = link(&bench, &parent, &child, MOMENTS).unwrap();
        assert_eq!((linked.effect, linked.task.status), (Effect::Now, Status::Todo));
        bench.check();
    }
}
