//! Correction of stored times after the real-time clock was set back.
//!
//! A host that boots with its clock ahead stores times that its rules could not produce from the right time. Each of
//! them is recomputed. A time that a caller names, such as the start of a scheduled task, stays as it is named.
//!
//! See decision 0263.

use std::time::Duration;

use serde_json::json;

use super::hold::SERVED;
use super::{Board, Record, SYSTEM};
use crate::model::clock::Timestamp;
use crate::model::clock_set::ClockSet;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::hold::{BREAKER_PAUSE, Hold, HoldKind};
use crate::model::id::TaskId;
use crate::model::schedule::Schedule;
use crate::model::state::{Change, Gate, State};
use crate::rules::ticks::Ticks;
use crate::store::delays::Delay;
use crate::store::fields::Field;

impl Board<'_> {
    /// Recomputes each stored time that is later than its rule could make it now, and stores the counts. The caller calls
    /// this function when it begins to serve the board, and when the real-time clock was set.
    pub fn follow_set_clock(&mut self) -> Result<ClockSet, Error> {
        let mut set = ClockSet { at: self.now(), ..ClockSet::default() };
        for schedule in self.tx.schedules()?.iter().filter(|schedule| schedule.decided > set.at) {
            set.schedules += u64::from(self.recall_schedule(schedule)?);
        }
        for hold in self.holds()? {
            let is_named = hold.kind == HoldKind::Manual && hold.created_at > set.at;
            set.named += u64::from(is_named && hold.until > Some(set.at));
            set.holds += u64::from(self.recall_hold(&hold)?);
        }
        self.recall_tasks(&mut set)?;
        for (id, until) in self.tx.requests_beyond(set.at)? {
            let longest = self.rule(&self.expect_task(&id)?).expires.map(|time| set.at.after(time));
            if let Some(longest) = longest.filter(|longest| *longest < until) {
                self.tx.set_approval_end(&id, Some(longest))?;
                set.requests += 1;
            }
        }
        set.messages = self.tx.recall_tries(set.at)? as u64;
        self.tx.recall_ages(set.at)?;
        if !set.is_empty() {
            self.tx.put_clock_set(&set)?;
        }
        Ok(set)
    }

    /// Lets a schedule with decided ticks in the future go on from now. Returns true if its next tick changed.
    fn recall_schedule(&self, schedule: &Schedule) -> Result<bool, Error> {
        let now = self.now();
        // A schedule whose time zone is no longer known rests until it is defined again.
        let Ok(ticks) = Ticks::parse(&schedule.spec.timing) else { return Ok(false) };
        let next = if schedule.spec.paused { None } else { ticks.after(now) };
        self.tx.recall_schedule(&schedule.name, now, next)?;
        Ok(next != schedule.next)
    }

    /// Bounds the end of a hold. Returns true if it was too late.
    fn recall_hold(&self, hold: &Hold) -> Result<bool, Error> {
        let now = self.now();
        let Some(until) = hold.until else { return Ok(false) };
        let longest = match (hold.probe_run, hold.kind) {
            (_, HoldKind::Manual | HoldKind::Limit) => return Ok(false),
            (Some(_), _) => now.after(SERVED),
            (None, HoldKind::Breaker) => now.after(BREAKER_PAUSE),
            (None, HoldKind::Budget) => self.clock.day().ends_at,
            (None, HoldKind::RateLimit | HoldKind::Login) => {
                let met = hold.run_id.map(|run| self.expect_run(run)).transpose()?;
                let met_at = met.and_then(|run| run.ended_at).max(Some(hold.created_at));
                now.after(counted_ahead(met_at, until, now).unwrap_or(self.quotas.longest_hold))
            }
        };
        if until <= longest {
            return Ok(false);
        }
        self.tx.set_probe(hold.id, hold.probe_run, longest)?;
        let hold = Hold { until: Some(longest), ..hold.clone() };
        self.append_hold_event(
            EventKind::Held,
            &hold,
            None,
            json!({ "change": "the clock was set" }),
            SYSTEM,
        )?;
        Ok(true)
    }

    /// Recomputes the next tries of tasks, and counts the times that callers named.
    fn recall_tasks(&self, set: &mut ClockSet) -> Result<(), Error> {
        let (boot_id, now) = (self.clock.boot_id(), set.at);
        for task in self.tx.waiting_for_a_time(now, &boot_id)? {
            if let Some(wait) = counted_ahead(task.counted_from, task.not_before, now) {
                let due_us = i64::try_from((self.clock.boottime() + wait).as_micros()).unwrap_or(i64::MAX);
                let end = PauseEnd { at: now.after(wait), due_us };
                self.move_pause(&task.id, &boot_id, end)?;
                set.tasks += 1;
            } else if task.is_changed_ahead {
                set.named += 1;
            }
        }
        Ok(())
    }

    /// Moves the end of a task's pause on the real-time clock, and stores its end on the clock since boot.
    pub(super) fn move_pause(&self, id: &TaskId, boot_id: &str, end: PauseEnd) -> Result<(), Error> {
        let PauseEnd { at, due_us } = end;
        let from = self.state_row(id)?;
        if let State::Scheduled { .. } = from.state {
            let payload = json!({
                "reason": "the clock was set", "not_before": at,
                "in_seconds": super::seconds_until(self.now(), at),
            });
            let change = Change::Reevaluated { gate: Gate::Until(at) };
            self.shift(id, &from, change, Record::new(EventKind::Scheduled, payload, SYSTEM))?;
        } else {
            self.set(id, &Field::NotBefore(Some(at)))?;
        }
        self.tx.put_delay(&Delay { task: id, not_before: at, boot_id, due_us })
    }
}

/// End of a pause on both clocks.
#[derive(Clone, Copy)]
pub(super) struct PauseEnd {
    pub(super) at: Timestamp,
    /// End in microseconds since boot.
    pub(super) due_us: i64,
}

/// Returns the length of a wait that was counted from a moment in the future; none for another moment.
fn counted_ahead(from: Option<Timestamp>, until: Timestamp, now: Timestamp) -> Option<Duration> {
    from.filter(|from| *from > now && *from < until).map(|from| until.since(from))
}

#[cfg(test)]
#[path = "clock_set_tests.rs"]
mod tests;
