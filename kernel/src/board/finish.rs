//! End of a run: applies its verdict, or the cause of its end, to the task.

use serde_json::{Value, json};

use super::{Board, Record, SYSTEM, completed_payload, preview};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::filter::EventFilter;
use crate::model::id::{RunId, TaskId};
use crate::model::limits;
use crate::model::missing::Missing;
use crate::model::outcome::{BlockKind, Denied, Ending, Finished, OnCleanExit, Outcome};
use crate::model::run::Run;
use crate::model::state::{Change, Then};
use crate::model::status::WasDone;
use crate::model::verdict::{Blocking, Handoff, Verdict, cancelled_by};
use crate::rules::backoff::Jitter;
use crate::rules::check;
use crate::rules::diagnose::gave_up;
use crate::rules::implied_verdict;
use crate::rules::recurrence::{Limited, Recurrence};
use crate::rules::retry::{Decision, Tally};
use crate::rules::uncommitted;
use crate::store::delays::Delay;
use crate::store::fields::Field;
use crate::store::runs::Close;
use crate::store::tasks::StateRow;

/// The signal that no process survives (signal(7)).
const SIGKILL: i32 = 9;

impl Board<'_> {
    /// Closes a run whose end is proven, and moves its task on. The next status follows from the recorded verdict, else from
    /// the reason of a stop, else from the cause of the end. A second call for the same run changes nothing and returns the
    /// result of the first.
    pub fn finish_run(&mut self, id: RunId, ending: Ending) -> Result<Finished, Error> {
        let run = self.expect_run(id)?;
        if run.ended_at.is_some() {
            let first = self.tx.finished_run(id)?.ok_or_else(|| Error::missing(Missing::EndOfRun, id))?;
            return Ok(Finished { already_finished: true, ..first });
        }
        let from = self.state_row(&run.task_id)?;
        // The end is kept between the claim and the current time, because a clock may have been set since.
        let ended_at =
            ending.ended_at.unwrap_or(self.now()).clamp(run.started_at.min(self.now()), self.now());
        let tally = Tally {
            failures: from.failures,
            max_retries: from.max_retries,
            blocks: from.blocks(),
            gate: self.gate(&run.task_id, from.not_before)?,
            awaits: self.has_awaited_parent(&run)?,
            errand: self.errand(&run, &from)?,
            goal: from.goal_by_verdict(),
            pace: self.pace(&run, ended_at)?,
            jitter: Jitter::draw(self.entropy),
            ended_at,
        };
        // The order of these steps matters: each may change the ending, the verdict or the decision, and the later steps
        // work on the changed values.
        let ending = self.with_reported_limit(&run, from.max_retries, ending)?;
        let ending = self.with_spent_budget(&run, ending)?;
        // Computed from the run's own verdict, before an implied verdict takes its place.
        let is_outside = run.verdict.is_none() && run.stop_reason.is_none() && ending.cause.is_outside();
        let run = self.with_returned_proposal(run, &ending)?;
        let run = implied_verdict::with_verdict(run, &ending, from.proof_of_goal());
        let (run, withheld) = self.with_uncommitted(run, &ending)?;
        let decision = check::decide(run.verdict.as_ref(), run.stop_reason, &ending, tally, self.now());
        let decision = self.proposed(&run, decision, &ending, tally)?;
        let decision = self.with_review_rounds(&run, decision, tally)?;
        let decision = self.with_canceller(&run, self.send_to_check(&run, &from, decision)?)?;
        let decision = Decision { handoff: decision.handoff.or(withheld), ..decision };
        let change = Change::Ended { run: id, outcome: decision.outcome, then: decision.then };
        let blocking = blocking(&run, &decision, &from);
        let (mut kind, mut payload) = record(&run, &decision, &ending, &from, tally.ended_at);
        if decision.outcome == Outcome::Approved {
            payload = self.completed_by_review(&run.task_id)?;
        }
        if decision.outcome == Outcome::CheckPassed {
            (kind, payload) = self.event_of_passed_check(&run, decision.then)?;
        }
        let record = Record::new(kind, payload, SYSTEM).in_run(id).blocking(blocking.as_ref());
        // The fields of the task come before the move: the message about the move reads them.
        self.prepare(&run, &decision)?;
        if let Some(note) = &ending.branch_note {
            self.set(&run.task_id, &Field::BranchNote(Some(note)))?;
        }
        let to = self.shift(&run.task_id, &from, change, record)?;
        self.store_asked_approval(&run, to)?;
        self.count(&run, &from, &decision, &ending)?;
        // Decision 0030.
        // A run that never began its work replaces the row of an earlier run of the same kind, so that a broken environment
        // leaves one row.
        let replaces = if is_outside { self.tx.gather_tries(&run.task_id, id)? } else { None };
        let finished = Finished {
            retry_at: decision.retry_at(),
            replaces,
            ..Finished::new(&run.task_id, to.status(), decision.outcome)
        };
        self.close(&run, &decision, &ending, &finished, tally.ended_at)?;
        if let Some(spent) = &ending.spent {
            self.keep_spent(&run, spent)?;
        }
        self.charge_mission(&run, tally.ended_at.since(run.started_at), 0)?;
        self.delay(&run, &decision, tally)?;
        self.follow(&run, &from, &decision)?;
        if let Some(Verdict::Move { .. }) = &run.verdict {
            let task = self.expect_task(&run.task_id)?;
            let payload = json!({ "status": task.status });
            self.append(&task, Some(id), EventKind::Status, payload, SYSTEM)?;
        }
        self.settle_holds(&run, decision.outcome, &ending)?;
        self.drop_consults_of(id)?;
        self.tx.forget_usage(id)?;
        Ok(finished)
    }

    /// Returns the run. If its task requires commits and the run left changes uncommitted, the run blocks its task, and the
    /// withheld handoff is returned as well. A verdict that a person gave needs no commit.
    fn with_uncommitted(&self, run: Run, ending: &Ending) -> Result<(Run, Option<Handoff>), Error> {
        match uncommitted::withheld(&run, ending) {
            Some((blocked, handoff)) if !self.is_persons(run.id)? => Ok((blocked, Some(handoff))),
            Some(_) | None => Ok((run, None)),
        }
    }

    /// Adds the author of the cancellation and the reason to the error of a cancelled run.
    fn with_canceller(&self, run: &Run, decision: Decision) -> Result<Decision, Error> {
        if decision.outcome != Outcome::Cancelled || decision.error.is_none() {
            return Ok(decision);
        }
        let filter = EventFilter {
            task: Some(run.task_id.clone()),
            kinds: vec![EventKind::StopRequested.to_string()],
            limit: 1,
            newest_first: true,
            ..EventFilter::default()
        };
        let asked = self.tx.list_events(&filter)?.rows.pop().filter(|event| event.run_id == Some(run.id));
        let Some(payload) = asked.and_then(|event| event.payload) else { return Ok(decision) };
        let Some(by) = payload["by"].as_str() else { return Ok(decision) };
        Ok(Decision { error: Some(cancelled_by(by, payload["reason"].as_str())), ..decision })
    }

    /// Stores the fields of the task that must be in place before the move, because the message about the move reads them.
    fn prepare(&self, run: &Run, decision: &Decision) -> Result<(), Error> {
        if let (Outcome::ReviewRequested, Some(Verdict::RequestReview(request))) =
            (decision.outcome, &run.verdict)
        {
            self.keep_review(&run.task_id, request)?;
            self.set(&run.task_id, &Field::NotBefore(None))?;
        }
        if decision.handed_to_check() && decision.outcome == Outcome::Completed {
            self.keep_unchecked(run)?;
        }
        if decision.review_at.is_some() {
            self.set(&run.task_id, &Field::NotBefore(decision.review_at))?;
        }
        if decision.outcome == Outcome::Approved {
            self.record_approved(&run.task_id, Some(run.id), SYSTEM)?;
        }
        if let Some(handoff) = decision.handoff.as_ref().filter(|_| decision.outcome != Outcome::Blocked) {
            self.keep_handoff(&run.task_id, handoff)?;
        }
        Ok(())
    }

    /// Updates the counters of the task.
    fn count(&self, run: &Run, from: &StateRow, decision: &Decision, ending: &Ending) -> Result<(), Error> {
        let id = &run.task_id;
        if decision.failures != from.failures {
            self.set(id, &Field::Failures(decision.failures))?;
        }
        let is_failure = !matches!(decision.outcome, Outcome::Blocked | Outcome::ChangesRequested);
        if is_failure && decision.error.is_some() {
            self.set(id, &Field::LastError(decision.error.as_deref()))?;
        }
        self.count_check(id, from, decision.outcome)?;
        self.count_turn(run, from, decision, ending)?;
        if matches!(decision.outcome, Outcome::Completed | Outcome::Approved | Outcome::CheckPassed) {
            self.tx.forget_error(id, self.now())?;
            if from.blocks() != Recurrence::default() {
                self.set_blocks(id, Recurrence::default())?;
            }
        }
        if let (Outcome::Blocked, Some(Verdict::Block(block))) = (decision.outcome, &run.verdict) {
            let blocks = from.blocks().with(block.kind);
            self.set_blocks(id, if decision.then == Then::Triage { blocks.in_triage() } else { blocks })?;
        }
        Ok(())
    }

    /// Closes the row of a run, and drops the messages that its agent has not received.
    pub(super) fn close(
        &self,
        run: &Run,
        decision: &Decision,
        ending: &Ending,
        finished: &Finished,
        ended_at: Timestamp,
    ) -> Result<(), Error> {
        let (handoff, error) = (decision.handoff.as_ref(), decision.error.as_deref());
        let of_handoff = Close::without_process(finished, handoff, error, ended_at);
        let end = Close {
            summary: of_handoff.summary.or_else(|| last_words(decision, ending)),
            exit_code: ending.exit_code,
            signal: ending.signal,
            measured: ending.measured,
            usage: ending.usage.as_ref(),
            evidence: ending.evidence.as_ref(),
            stderr_tail: ending.stderr_tail.as_deref(),
            ..of_handoff
        };
        self.drop_messages(run)?;
        let closed = self.tx.close_run(run.id, &end)?;
        if closed {
            Ok(())
        } else {
            Err(Error::conflict(format!("run {} has ended meanwhile", run.id), "nothing was done; ask again"))
        }
    }

    /// Stores the end of the pause as time since boot too, so that setting the real-time clock does not change the pause.
    fn delay(&self, run: &Run, decision: &Decision, tally: Tally) -> Result<(), Error> {
        let pause_ends = tally.ended_at.after(decision.pause);
        let Some(at) = decision.retry_at().filter(|at| *at == pause_ends && !decision.pause.is_zero()) else {
            return Ok(());
        };
        let boot_id = self.clock.boot_id();
        let due = self.clock.boottime() + at.since(self.now());
        self.tx.forget_delays_of_other_boots(&boot_id)?;
        let due_us = i64::try_from(due.as_micros()).unwrap_or(i64::MAX);
        self.tx.put_delay(&Delay { task: &run.task_id, not_before: at, boot_id: &boot_id, due_us })
    }

    /// Records the consequences of the task's move: the event that the task was given up, and the moves of its children.
    fn follow(&self, run: &Run, from: &StateRow, decision: &Decision) -> Result<(), Error> {
        if decision.gave_up() {
            let task = self.expect_task(&run.task_id)?;
            let mut payload = json!({
                "failures": decision.failures, "error": decision.error, "trigger_outcome": decision.outcome,
                "limit_source": if from.max_retries.is_some() { "task" } else { "dispatcher" },
            });
            if decision.outcome == Outcome::CheckFailed {
                payload["failed_checks"] = json!(task.failed_checks);
            }
            self.append(&task, Some(run.id), EventKind::GaveUp, payload, SYSTEM)?;
        }
        match decision.then {
            Then::Done => self.reevaluate_children(&run.task_id, SYSTEM),
            Then::Archived(WasDone::Yes) => {
                let task = self.expect_task(&run.task_id)?;
                self.append(&task, Some(run.id), EventKind::Archived, None, SYSTEM)?;
                self.reevaluate_children(&run.task_id, SYSTEM)
            }
            Then::Archived(WasDone::No) => self.release_children(&run.task_id, SYSTEM),
            Then::Blocked(_) | Then::Review | Then::Triage | Then::Again(_) => Ok(()),
        }
    }

    /// Unlinks the open children of a task that will never be done.
    pub(super) fn release_children(&self, parent: &TaskId, actor: &str) -> Result<(), Error> {
        for child in self.tx.open_children(parent)? {
            self.drop_link(parent, &self.expect_task(&child)?, "parent_archived", actor)?;
            self.reevaluate(&child, actor)?;
        }
        Ok(())
    }
}

/// Returns the block reason of a task that this end blocks.
fn blocking(run: &Run, decision: &Decision, from: &StateRow) -> Option<Blocking> {
    let Then::Blocked(kind) = decision.then else { return None };
    if let Some(Verdict::Block(blocking)) = &run.verdict {
        return Some(blocking.clone());
    }
    let mut reason = decision.error.clone();
    if kind == BlockKind::GaveUp {
        let checks = (decision.outcome == Outcome::CheckFailed).then(|| from.failed_checks.saturating_add(1));
        let after = gave_up(decision.failures, checks);
        reason = Some(format!("{after}: {}", reason.unwrap_or_default()));
    }
    let is_cancel = decision.outcome == Outcome::Cancelled;
    Some(Blocking { kind, reason, is_cancel, ..Blocking::default() })
}

/// Returns the final text of a worker that ended without a verdict. The run stores it as its summary, but it is not a
/// handoff.
fn last_words<'e>(decision: &Decision, ending: &'e Ending) -> Option<&'e str> {
    let text = match &ending.result_policy {
        OnCleanExit::Complete { summary }
        | OnCleanExit::Review { summary }
        | OnCleanExit::ToolsRefused { summary }
        | OnCleanExit::TurnEnded { summary } => summary.as_deref(),
        OnCleanExit::Unreported => None,
    };
    let text = text.filter(|_| decision.outcome == Outcome::Unreported)?;
    Some(&text[..text.floor_char_boundary(limits::SUMMARY)])
}

/// Returns the event of an end, with its payload.
fn record(
    run: &Run,
    decision: &Decision,
    ending: &Ending,
    from: &StateRow,
    ended_at: Timestamp,
) -> (EventKind, Value) {
    let mut payload = json!({
        "outcome": decision.outcome, "error": decision.error, "pid": run.worker_pid, "failures": decision.failures,
        "exit_code": ending.exit_code, "signal": ending.signal, "retry_at": decision.retry_at(),
    });
    if let (Value::Object(payload), Value::Object(measured)) = (&mut payload, json!(ending.measured)) {
        payload.extend(measured);
    }
    if let Some(denied) = &ending.denied {
        payload[Denied::KEY] = json!(denied);
    }
    let kind = match decision.outcome {
        // Work that its check has not proved counts as not done when it is archived.
        Outcome::Cancelled | Outcome::Completed if decision.then == Then::Archived(WasDone::No) => {
            EventKind::Archived
        }
        Outcome::Completed => {
            payload = completed_payload(decision.handoff.as_ref());
            EventKind::Completed
        }
        Outcome::Blocked => {
            let limited = if decision.then == Then::Triage { Limited::Yes } else { Limited::No };
            if let Some(Verdict::Block(block)) = &run.verdict {
                payload = from.blocks().with(block.kind).payload(block, limited);
            }
            match decision.then {
                Then::Triage => EventKind::BlockLoopDetected,
                Then::Again(_) => EventKind::DependencyWait,
                Then::Blocked(_) | Then::Done | Then::Review | Then::Archived(_) => EventKind::Blocked,
            }
        }
        Outcome::ReviewRequested => {
            payload = match &run.verdict {
                Some(Verdict::RequestReview(request)) => super::review::requested(request),
                Some(_) | None => completed_payload(decision.handoff.as_ref()),
            };
            EventKind::ReviewRequested
        }
        // The caller replaces this event by the event of the verdict that the work ended with.
        Outcome::Approved | Outcome::CheckPassed => {
            payload = json!({});
            EventKind::Completed
        }
        Outcome::CheckFailed => {
            payload = super::check::failed(ending, decision, from);
            EventKind::CheckFailed
        }
        Outcome::ChangesRequested => {
            let Some(Verdict::RequestChanges { reason }) = &run.verdict else {
                return (EventKind::ChangesRequested, json!({ "reason": null }));
            };
            payload = json!({ "reason": preview(Some(reason)) });
            if decision.error.is_some() {
                payload["error"] = json!(decision.error);
            }
            EventKind::ChangesRequested
        }
        // Readers of Hermes Kanban know the keys of the next three kinds.
        Outcome::Reclaimed => {
            payload["stale_lock"] = json!(run.claim_lock);
            EventKind::Reclaimed
        }
        Outcome::Crashed => {
            payload["claimer"] = json!(run.claim_lock);
            EventKind::Crashed
        }
        Outcome::TimedOut => {
            payload["elapsed_seconds"] = ended_at.since(run.started_at).as_secs().into();
            payload["limit_seconds"] = json!(run.max_runtime_seconds);
            payload["limit_from"] = json!(run.max_runtime_from);
            payload["sigkill"] = (ending.signal == Some(SIGKILL)).into();
            EventKind::TimedOut
        }
        Outcome::Unreported if decision.turn.is_some() => {
            payload["turn"] = json!(decision.turn);
            payload["max_turns"] = json!(from.goal.turns());
            EventKind::GoalTurn
        }
        Outcome::Unreported => {
            payload["protocol_violation"] = true.into();
            EventKind::ProtocolViolation
        }
        Outcome::Cancelled => EventKind::Cancelled,
        Outcome::Preempted => EventKind::Preempted,
        Outcome::Stalled => EventKind::Stalled,
        Outcome::OutOfMemory => EventKind::OutOfMemory,
        Outcome::RateLimited => EventKind::RateLimited,
        Outcome::Lost => EventKind::Lost,
        Outcome::SpawnFailed => EventKind::SpawnFailed,
    };
    if decision.handed_to_check() {
        payload["check"] = json!(preview(from.check.command.as_deref()));
        return (EventKind::CheckPending, payload);
    }
    (kind, payload)
}
