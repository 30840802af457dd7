//! Checks of handed-over work: their preparation, their results, and changes of the check itself.
//!
//! See decision 0098.

use serde_json::{Value, json};

use super::{Board, SYSTEM, preview, verdict};
use crate::model::actor::{ActorKind, Label};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::limits;
use crate::model::outcome::{EndCause, Ending, OnCleanExit, Outcome};
use crate::model::run::{Purpose, Run};
use crate::model::state::Then;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::model::verdict::Handoff;
use crate::rules::check;
use crate::rules::implied_verdict::{self, Proof};
use crate::rules::new_task;
use crate::rules::retry::{Checked, Decision, Errand};
use crate::rules::turns::{GoalTurns, TurnPace};
use crate::store::fields::Field;
use crate::store::tasks::StateRow;

impl Board<'_> {
    /// Returns the purpose of a run, with the data that its end needs.
    pub(super) fn errand(&self, run: &Run, from: &StateRow) -> Result<Errand, Error> {
        Ok(match run.purpose {
            Purpose::Work => Errand::Work,
            Purpose::Review => Errand::Review,
            Purpose::Check => {
                let of = self.expect_task(&run.task_id)?.unchecked_run.unwrap_or(run.id);
                let proved = match self.expect_run(of)?.outcome {
                    Some(Outcome::ReviewRequested) => Then::Review,
                    _ => Then::Done,
                };
                Errand::Check(Checked {
                    of,
                    proved,
                    failed: from.failed_checks,
                    limit: from.check.limit(&from.goal),
                })
            }
        })
    }

    /// Sends the work of a run to its task's check. The decision of a person needs no proof.
    pub(super) fn send_to_check(
        &self,
        run: &Run,
        from: &StateRow,
        decision: Decision,
    ) -> Result<Decision, Error> {
        if from.check.command.is_none() || run.purpose == Purpose::Check {
            return Ok(decision);
        }
        Ok(if self.is_persons(run.id)? { decision } else { check::await_check(decision, run.id) })
    }

    /// Returns true if the verdict of a run is a person's.
    pub(super) fn is_persons(&self, run: RunId) -> Result<bool, Error> {
        let by = self.tx.verdict_by(run)?;
        Ok(by.is_some_and(|by| Label::parse(&by).kind == Some(ActorKind::Person)))
    }

    /// Stores the author of work that waits for its check.
    pub(super) fn keep_unchecked(&self, run: &Run) -> Result<(), Error> {
        let name = run.profile.as_ref().map_or("worker", Profile::as_str);
        self.set(&run.task_id, &Field::WorkBy(&format!("{}:{name}", ActorKind::Worker)))?;
        self.set(&run.task_id, &Field::NotBefore(None))
    }

    /// Returns the event of a task whose work has passed its check: the event that the work's own verdict asked for.
    pub(super) fn event_of_passed_check(&self, run: &Run, proved: Then) -> Result<(EventKind, Value), Error> {
        let task = self.expect_task(&run.task_id)?;
        let payload = json!({ "check": command(&task) });
        self.append(&task, Some(run.id), EventKind::CheckPassed, payload, SYSTEM)?;
        // A reviewer's run hands nothing over, so the summary of the work's own run counts.
        let of = task.unchecked_run.map(|of| self.expect_run(of)).transpose()?;
        let of = match of {
            Some(of) if of.purpose == Purpose::Review => self.last_completed_run(&task.id)?,
            of => of,
        };
        let summary = of.and_then(|of| of.summary);
        let mut payload = verdict::completed(&Handoff {
            result: task.result,
            summary,
            metadata: None,
            artifacts: task.artifacts,
        });
        if proved != Then::Review {
            return Ok((EventKind::Completed, payload));
        }
        payload["reviewer"] = json!(task.reviewer);
        payload["work_by"] = json!(task.work_by);
        Ok((EventKind::ReviewRequested, payload))
    }

    /// Counts the result of a check on its task. Work that was sent back no longer waits for a check.
    pub(super) fn count_check(&self, id: &TaskId, from: &StateRow, outcome: Outcome) -> Result<(), Error> {
        if outcome == Outcome::CheckFailed {
            self.set(id, &Field::FailedChecks(from.failed_checks.saturating_add(1)))?;
            return self.tx.forget_unchecked_work(id);
        }
        if outcome == Outcome::CheckPassed {
            self.set(id, &Field::FailedChecks(0))?;
        }
        if outcome == Outcome::ChangesRequested {
            return self.tx.forget_unchecked_work(id);
        }
        Ok(())
    }

    /// Returns the pace of a task's turns, for a run that ends a turn. A turn is the work, and its check if there is one.
    pub(super) fn pace(&self, run: &Run, ended_at: Timestamp) -> Result<TurnPace, Error> {
        let duration = ended_at.since(run.started_at);
        let mut before = self.tx.lengths_of_turns(&run.task_id, run.id)?.into_iter();
        let last = match run.purpose {
            Purpose::Work => duration,
            Purpose::Check => duration.saturating_add(before.next().unwrap_or_default()),
            Purpose::Review => return Ok(TurnPace::default()),
        };
        Ok(TurnPace::from_lengths(std::iter::once(last).chain(before)))
    }

    /// Stores the number of turns toward the goal, the last turn included. A person who lets the task go on grants as
    /// many again.
    pub(super) fn count_turn(
        &self,
        run: &Run,
        from: &StateRow,
        decision: &Decision,
        ending: &Ending,
    ) -> Result<(), Error> {
        let is_last = run.purpose == Purpose::Work
            && matches!(decision.outcome, Outcome::Completed | Outcome::Blocked)
            && matches!(ending.cause, EndCause::Exited { code: 0 })
            && matches!(ending.result_policy, OnCleanExit::TurnEnded { .. });
        let last = from.goal_by_verdict().filter(|_| is_last).map(GoalTurns::turn);
        match decision.turn.or(last) {
            Some(turn) => self.set(&run.task_id, &Field::GoalTurns(turn)),
            None => Ok(()),
        }
    }

    /// Changes the check of a task, unless work waits for it.
    pub(super) fn edit_check(
        &self,
        task: &Task,
        command: Option<&str>,
        limit: Option<u32>,
        fields: &mut Vec<&'static str>,
    ) -> Result<(), Error> {
        if command.is_none() && limit.is_none() {
            return Ok(());
        }
        let id = &task.id;
        // Work that waits for its check keeps the check under which it was handed over.
        if let Some(of) = task.unchecked_run {
            return Err(Error::conflict(
                format!("the work of run {of} on {id} waits for its check, or is being checked"),
                format!("wait for its end, or decide yourself: `supervisor complete {id}`"),
            ));
        }
        if matches!(task.status, Status::Done | Status::Archived) {
            return Err(Error::conflict(
                format!("{id} is {}: nothing more is checked", task.status),
                format!("`supervisor reopen {id}` lets it be done again"),
            ));
        }
        // An empty command removes the check. A new command starts a new count of failures.
        if let Some(command) = command {
            limits::bytes("check", command, limits::WORD)?;
            let command = Some(command).filter(|command| !command.is_empty());
            command.map_or(Ok(()), |command| limits::filled("check", command, new_task::CHECK_HINT))?;
            self.change(id, "check", &Field::Check(command), fields)?;
            self.set(id, &Field::FailedChecks(0))?;
        }
        if let Some(limit) = limit {
            // The check that the task has after this edit.
            let has_check = match command {
                Some(command) => !command.is_empty(),
                None => task.check.command.is_some(),
            };
            new_task::require_limit(limit, has_check.then_some(()))?;
            self.change(id, "max_checks", &Field::MaxChecks(limit), fields)?;
        }
        Ok(())
    }

    /// Resets the failure counts of a task that a person lets go on.
    pub(super) fn forget_failures(&self, id: &TaskId) -> Result<(), Error> {
        self.set(id, &Field::Failures(0))?;
        self.set(id, &Field::FailedChecks(0))?;
        self.set(id, &Field::GoalTurns(0))
    }
}

impl StateRow {
    /// Returns the kind of proof of the task's goal, if it has one.
    pub(super) fn proof_of_goal(&self) -> Option<Proof> {
        implied_verdict::proof(&self.goal, self.check.command.as_ref().map(drop), self.goal_turns)
    }

    /// Returns the turns toward a goal that only the worker's verdict proves.
    pub(super) fn goal_by_verdict(&self) -> Option<GoalTurns> {
        match self.proof_of_goal()? {
            Proof::Check => None,
            Proof::Verdict(turns) => Some(turns),
        }
    }
}

/// Returns the payload of the event of a failed check.
pub(super) fn failed(ending: &Ending, decision: &Decision, from: &StateRow) -> Value {
    json!({
        "check": preview(from.check.command.as_deref()), "error": decision.error,
        "exit_code": ending.exit_code, "signal": ending.signal,
        "failed_checks": from.failed_checks.saturating_add(1), "max_checks": from.check.limit(&from.goal),
    })
}

/// Returns the command, shortened for an event.
fn command(task: &Task) -> Option<String> {
    preview(task.check.command.as_deref())
}
