//! Changes that come with time, and the records of the dispatcher.

use serde_json::json;

use super::clock_set::PauseEnd;
use super::{Board, SYSTEM};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::id::TaskId;
use crate::model::outcome::{EndCause, Ending, StopReason};
use crate::model::status::Status;
use crate::store::fields::Field;

/// Largest number of tasks that one transaction wakes. The others stay due.
const AT_ONCE: u32 = 1000;
/// Difference between the real-time clock and the clock since boot, in microseconds, beyond which pauses are moved. The
/// real-time clock is slewed all the time.
const DRIFT_US: i64 = 1_000_000;

impl Board<'_> {
    /// Applies all that is due: wakes tasks whose time has come, takes back expired external claims, denies expired
    /// requests for approvals, decides about ticks, and ends holds. Pauses the missions whose runs have used up their
    /// time. Returns the tasks.
    pub fn wake_due(&mut self) -> Result<Vec<TaskId>, Error> {
        let boot_id = self.clock.boot_id();
        let boottime = i64::try_from(self.clock.boottime().as_micros()).unwrap_or(i64::MAX);
        self.follow_the_clock(&boot_id, boottime)?;
        let mut woken = self.tx.due_tasks(self.now(), &boot_id, AT_ONCE)?;
        for id in &woken {
            self.reevaluate(id, SYSTEM)?;
        }
        for id in self.tx.take_due_delays(&boot_id, boottime, AT_ONCE)? {
            // The pause is over on the clock since boot, whatever the real-time clock shows.
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

    /// Moves the ends of pauses on the real-time clock, after an administrator has set that clock.
    fn follow_the_clock(&self, boot_id: &str, boottime: i64) -> Result<(), Error> {
        let booted = Timestamp::from_micros(self.now().as_micros().saturating_sub(boottime));
        for (id, due_us) in self.tx.displaced_delays(boot_id, booted, DRIFT_US, AT_ONCE)? {
            let at = Timestamp::from_micros(booted.as_micros().saturating_add(due_us));
            self.move_pause(&id, boot_id, PauseEnd { at, due_us })?;
        }
        Ok(())
    }

    /// Records that nothing can spawn a task's assignee. A repeat with the same reason leaves no event.
    pub fn note_nonspawnable(&mut self, id: &TaskId, why: &str) -> Result<(), Error> {
        let task = self.expect_task(id)?;
        if self.tx.nonspawnable(id)?.as_deref() == Some(why) {
            return Ok(());
        }
        self.set(id, &Field::Nonspawnable(Some(why)))?;
        let performer = if task.status == Status::Review { &task.reviewer } else { &task.assignee };
        let payload = json!({ "assignee": performer, "reason": why });
        self.append(&task, None, EventKind::SkippedNonspawnable, payload, SYSTEM)
    }

    /// Returns the user id of a task's workers out of `low..=high`: the same for the task as long as it exists, and never
    /// shared. Ids are taken round robin, so that a freed id rests.
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

    /// Removes the stored replies from before a time. Returns their number.
    pub fn forget_requests(&mut self, before: Timestamp) -> Result<usize, Error> {
        self.tx.forget_replies_before(before)
    }

    /// Removes ledger rows from before a calendar day, at most `limit`. Returns their number.
    pub fn forget_ledger(&mut self, before: &str, limit: u32) -> Result<u64, Error> {
        self.tx.forget_ledger_before(before, limit)
    }

    /// Removes the stored replies in these rows.
    pub fn forget_replies(&mut self, rows: &[i64]) -> Result<(), Error> {
        rows.iter().try_for_each(|row| self.tx.forget_reply(*row))
    }
}
