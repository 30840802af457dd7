//! Verbs that let tasks go on: unblock, reclaim, promote, schedule, move.
//!
//! A task that waits for an approval is refused here, whoever calls: chats with the right to read, orchestrators and
//! plugins may unblock, and to unblock is not to approve.

use serde_json::json;

use super::{Board, Effect, Record, Settled, no_open_run};
use crate::model::actor::Actor;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{RunId, TaskId};
use crate::model::outcome::{BlockKind, EndCause, Ending, StopReason};
use crate::model::run::{Holder, Purpose, Run};
use crate::model::state::{Change, Gate, State};
use crate::model::task::Task;
use crate::model::verdict::{Destination, Verdict};
use crate::model::words::words;
use crate::rules::authority;
use crate::rules::transition::next;
use crate::store::fields::Field;
use crate::store::tasks::StateRow;

words! {
    /// Treatment of parents that are not done.
    "force"
    Force {
        /// Open parents refuse the promotion.
        No => "no",
        /// Open parents are unlinked.
        Yes => "yes",
    }
}

impl Board<'_> {
    /// Unblocks a blocked or scheduled task and resets its failures. A comment keeps the reason as the answer for the
    /// next worker. Refuses a task that waits for an approval.
    pub fn unblock(&mut self, id: &TaskId, reason: Option<&str>, actor: &Actor) -> Result<Task, Error> {
        let task = self.for_director(id, actor, "unblock a task")?;
        let from = self.state_row(id)?;
        if from.state == (State::Blocked { kind: BlockKind::Approval }) {
            // Unblocking would be an approval, which not every caller may give.
            return Err(super::illegal(id, from.state, Change::Unblocked { gate: Gate::Open }));
        }
        let is_scheduled = matches!(from.state, State::Scheduled { .. });
        let not_before = from.not_before.filter(|_| !is_scheduled);
        // Work that was under review or check before the block goes back there.
        let gate = match (&task.work_by, task.unchecked_run) {
            (_, Some(of)) => Gate::Check(of),
            (Some(_), None) => Gate::Review,
            (None, None) => self.gate(id, not_before)?,
        };
        let change = Change::Unblocked { gate };
        let payload = Some(json!({ "reason": reason }));
        self.shift(id, &from, change, Record::new(EventKind::Unblocked, payload, &actor.label()))?;
        self.forget_failures(id)?;
        if is_scheduled {
            // Otherwise the next try would wait for the time that was just set aside.
            self.set(id, &Field::NotBefore(None))?;
        }
        self.keep_reason(id, "UNBLOCK", reason, actor)?;
        self.expect_task(id)
    }

    /// Takes a running task back: its run is ended with the outcome `reclaimed`.
    pub fn reclaim(&mut self, id: &TaskId, reason: Option<&str>, actor: &Actor) -> Result<Settled, Error> {
        let task = self.for_person(id, actor, "reclaim a task")?;
        let Some(run) = task.current_run_id else {
            return Err(no_open_run(&task, "there is nothing to take back"));
        };
        self.stop_run(run, StopReason::Reclaimed, reason, actor)
    }

    /// Asks for the end of an open run without a verdict. A verdict that was recorded before stays.
    pub fn stop_run(
        &mut self,
        id: RunId,
        reason: StopReason,
        note: Option<&str>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        authority::person(actor, "end a run")?;
        let run = self.expect_run(id)?;
        let task = self.task_for(&run.task_id, actor)?;
        if !self.tx.record_stop(id, reason, self.now())? {
            return Err(Error::conflict(format!("run {id} has ended"), "nothing was done"));
        }
        let payload = json!({ "stop_reason": reason, "reason": note, "by": actor.name });
        self.append(&task, Some(id), EventKind::StopRequested, payload, &actor.label())?;
        let effect = self.end_if_external(&run, reason)?;
        Ok(Settled { task: self.expect_task(&run.task_id)?, run: Some(id), effect })
    }

    /// Ends the run of an external worker at once, because it has no process to wait for.
    pub(super) fn end_if_external(&mut self, run: &Run, reason: StopReason) -> Result<Effect, Error> {
        match run.holder {
            Holder::External => {
                self.finish_run(run.id, Ending::new(EndCause::Stopped(reason)))?;
                Ok(Effect::Now)
            }
            Holder::Supervisor => Ok(Effect::WhenRunEnds),
        }
    }

    /// Lets a task leave triage, or a waiting task start at once. `force` unlinks the parents that are not done, because
    /// nothing starts before its parents.
    pub fn promote(
        &mut self,
        id: &TaskId,
        reason: Option<&str>,
        force: Force,
        actor: &Actor,
    ) -> Result<Task, Error> {
        let task = self.for_person(id, actor, "promote a task")?;
        let from = self.state_row(id)?;
        // Refuse a task in the wrong status before any link is removed.
        let trial = Change::Promoted { gate: Gate::Open };
        super::legal(id, from.state, trial)?;
        let open = self.open_parents(id)?;
        let label = actor.label();
        match force {
            Force::No if !open.is_empty() && from.state != State::Triage => {
                let open: Vec<String> = open.iter().map(ToString::to_string).collect();
                return Err(Error::conflict(
                    format!("{id} waits for {}", open.join(", ")),
                    "complete them, or promote it with `--force`: it no longer waits for them then",
                ));
            }
            Force::No => {}
            Force::Yes => {
                for parent in &open {
                    self.drop_link(parent, &task, "forced", &label)?;
                }
            }
        }
        // Work that was handed over goes back to its check or its review. Only a task in triage keeps its start time.
        let gate = match (&task.work_by, task.unchecked_run, from.state) {
            (_, Some(of), _) => Gate::Check(of),
            (Some(_), None, _) => Gate::Review,
            (None, None, State::Triage) => self.gate(id, from.not_before)?,
            (None, None, _) => self.gate(id, None)?,
        };
        let forced = force == Force::Yes && !open.is_empty();
        let payload = json!({ "actor": actor.name, "reason": reason, "forced": forced });
        let record = Record::new(EventKind::PromotedManual, payload, &label);
        self.shift(id, &from, Change::Promoted { gate }, record)?;
        if from.state != State::Triage {
            self.set(id, &Field::NotBefore(None))?;
            self.forget_failures(id)?;
        }
        self.expect_task(id)
    }

    /// Sets the time of a task; [`Timestamp::OPEN_END`] means until a person lets it go on. An open run is ended first. A
    /// comment keeps the reason.
    pub fn schedule(
        &mut self,
        id: &TaskId,
        at: Timestamp,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<Settled, Error> {
        let task = self.for_person(id, actor, "schedule a task")?;
        if at <= self.now() {
            return Err(Error::invalid(
                "at",
                "that time has passed",
                "give a time in the future, such as 2h; to start the task now: `supervisor promote <task>`",
            ));
        }
        self.keep_reason(id, "SCHEDULED", reason, actor)?;
        let from = self.state_row(id)?;
        let payload =
            json!({ "reason": reason, "not_before": at, "in_seconds": super::seconds_until(self.now(), at) });
        let label = actor.label();
        if let State::Running { run, .. } = from.state {
            let open = self.expect_run(run)?;
            if open.purpose == Purpose::Review {
                return Err(Error::conflict(
                    format!("the work on {id} is under review"),
                    "take it back from its reviewer, or send it back, and schedule it then: `supervisor request-changes`",
                ));
            }
            // The gate reads the time when the run has ended.
            self.set(id, &Field::NotBefore(Some(at)))?;
            self.append(&task, Some(run), EventKind::Scheduled, payload, &label)?;
            return self.decide(id, Verdict::Move { to: Destination::Queue }, Some(run), actor);
        }
        let change = Change::Scheduled { gate: self.gate(id, Some(at))? };
        self.shift(id, &from, change, Record::new(EventKind::Scheduled, payload, &label))?;
        self.set(id, &Field::NotBefore(Some(at)))?;
        self.settled(id, None)
    }

    /// Moves a task back to triage or into the queue. An open run is ended first.
    pub fn move_task(&mut self, id: &TaskId, to: Destination, actor: &Actor) -> Result<Settled, Error> {
        authority::person(actor, "move a task")?;
        self.decide(id, Verdict::Move { to }, None, actor)
    }

    /// Moves a task without an open run. Parents that will never be done are unlinked, or the task would wait for good.
    pub(super) fn move_unclaimed(
        &mut self,
        id: &TaskId,
        from: &StateRow,
        to: Destination,
        label: &str,
    ) -> Result<(), Error> {
        self.leave_archived_parents(&self.expect_task(id)?, label)?;
        let change = match to {
            Destination::Triage => Change::SentToTriage,
            Destination::Queue => Change::Requeued { gate: self.gate(id, from.not_before)? },
        };
        let status = next(Some(from.state), change).map_or(from.state, |to| to).status();
        let payload = json!({ "status": status });
        self.shift(id, from, change, Record::new(EventKind::Status, payload, label))?;
        self.forget_failures(id)?;
        self.reevaluate_children(id, label)
    }
}
