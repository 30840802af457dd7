//! What time does by itself, and what the dispatcher notes.

use serde_json::json;

use super::{Board, Record, SYSTEM};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::TaskId;
use crate::model::outcome::{EndCause, Ending, StopReason};
use crate::model::state::{Change, Gate, State};
use crate::model::status::Status;
use crate::store::delays::Delay;
use crate::store::fields::Field;

/// The most tasks woken in one transaction; the rest is due again at once.
const AT_ONCE: u32 = 1000;
/// How far the real-time clock may go from the clock since boot before pauses follow it: it is slewed all the time.
const DRIFT_US: i64 = 1_000_000;

impl Board<'_> {
    /// Wakes the tasks whose time has come, takes back the external claims that have expired, denies the requests for approvals that
    /// are over, and decides about the ticks of schedules that are due. Returns the tasks of all these. Missions whose runs have used
    /// up their time by now are paused.
    pub fn wake_due(&mut self) -> Result<Vec<TaskId>, Error> {
        let boot_id = self.clock.boot_id();
        let boottime = i64::try_from(self.clock.boottime().as_micros()).unwrap_or(i64::MAX);
        self.follow_the_clock(&boot_id, boottime)?;
        let mut woken = self.tx.due_tasks(self.now(), &boot_id, AT_ONCE)?;
        for id in &woken {
            self.reevaluate(id, SYSTEM)?;
        }
        for id in self.tx.take_due_delays(&boot_id, boottime, AT_ONCE)? {
            // Its pause is over, whatever the other clock says.
            self.set(&id, &Field::NotBefore(Some(self.now())))?;
            if self.expect_task(&id)?.status == Status::Scheduled {
                self.reevaluate(&id, SYSTEM)?;
            }
            if !woken.contains(&id) {
                woken.push(id);
            }
        }
        for run in self.tx.expired_claims(boottime, &boot_id)? {
            let task = self.expect_task(&run.task_id)?;
            let payload = json!({ "stale_lock": run.claim_lock, "claim_expires": run.claim_expires, "now": self.now() });
            self.append(&task, Some(run.id), EventKind::ClaimExpired, payload, SYSTEM)?;
            self.finish_run(run.id, Ending::new(EndCause::Stopped(StopReason::Reclaimed)))?;
            woken.push(run.task_id);
        }
        for id in self.tx.expired_approvals(self.now(), AT_ONCE)? {
            self.deny_expired(&id)?;
            woken.push(id);
        }
        self.pause_missions_at_work()?;
        self.end_holds()?;
        woken.extend(self.tick_schedules()?);
        Ok(woken)
    }

    /// Gives pauses the moments at which they end on the real-time clock, after somebody has set it.
    fn follow_the_clock(&self, boot_id: &str, boottime: i64) -> Result<(), Error> {
        let booted = Timestamp::from_micros(self.now().as_micros().saturating_sub(boottime));
        for (id, due_us) in self.tx.displaced_delays(boot_id, booted, DRIFT_US, AT_ONCE)? {
            let at = Timestamp::from_micros(booted.as_micros().saturating_add(due_us));
            let from = self.standing(&id)?;
            if let State::Scheduled { .. } = from.state {
                let payload = json!({
                    "reason": "the clock was set", "not_before": at,
                    "in_seconds": super::seconds_until(self.now(), at),
                });
                let change = Change::Reevaluated { gate: Gate::Until(at) };
                self.shift(&id, &from, change, Record::new(EventKind::Scheduled, payload, SYSTEM))?;
            } else {
                self.set(&id, &Field::NotBefore(Some(at)))?;
            }
            self.tx.put_delay(&Delay { task: &id, not_before: at, boot_id, due_us })?;
        }
        Ok(())
    }

    /// Notes that nothing can spawn a task's assignee: one event until the reason changes.
    pub fn note_nonspawnable(&mut self, id: &TaskId, why: &str) -> Result<(), Error> {
        let task = self.expect_task(id)?;
        if self.tx.nonspawnable(id)?.as_deref() == Some(why) {
            return Ok(());
        }
        self.set(id, &Field::Nonspawnable(Some(why)))?;
        let whose = if task.status == Status::Review { &task.reviewer } else { &task.assignee };
        let payload = json!({ "assignee": whose, "reason": why });
        self.append(&task, None, EventKind::SkippedNonspawnable, payload, SYSTEM)
    }

    /// Returns the user id of a task's workers out of `low..=high`: the same for the task as long as it exists, never
    /// shared with another one, and taken round robin so that an id that was freed rests.
    pub fn allocate_uid(&mut self, id: &TaskId, low: u32, high: u32) -> Result<u32, Error> {
        if let Some(uid) = self.tx.worker_uid_of(id)?.filter(|uid| (low..=high).contains(uid)) {
            return Ok(uid);
        }
        if low == 0 || low > high {
            return Err(Error::invalid(
                "uid range",
                format!("{low}-{high} is not a valid range of worker uids"),
                "fix it",
            ));
        }
        let start = self.tx.next_uid()?.clamp(low, high);
        let mut uid = start;
        while self.tx.is_uid_taken(uid)? {
            uid = if uid == high { low } else { uid + 1 };
            if uid == start {
                return Err(Error::conflict(
                    format!("every uid of {low}-{high} belongs to a task"),
                    "delete archived tasks, or widen the range",
                ));
            }
        }
        self.tx.set_next_uid(if uid == high { low } else { uid + 1 })?;
        self.tx.set_worker_uid(id, uid)?;
        Ok(uid)
    }

    /// Forgets the stored replies of requests before a time. Returns how many.
    pub fn forget_requests(&mut self, before: Timestamp) -> Result<usize, Error> {
        self.tx.forget_replies_before(before)
    }

    /// Forgets what was used before a calendar day, at most `limit` rows of the ledger. Returns how many.
    pub fn forget_ledger(&mut self, before: &str, limit: u32) -> Result<u64, Error> {
        self.tx.forget_ledger_before(before, limit)
    }

    /// Forgets the stored replies in these rows.
    pub fn forget_replies(&mut self, rows: &[i64]) -> Result<(), Error> {
        rows.iter().try_for_each(|row| self.tx.forget_reply(*row))
    }
}
