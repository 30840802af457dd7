//! Pauses before another try, measured on the clock since boot, so that setting the real-time clock does not change them.
//!
//! See decision 0263.

use rusqlite::params;

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::TaskId;

/// Condition: a row of `tasks` waits for the end of a pause under the boot `?2`.
pub(super) const PAUSES: &str = "EXISTS (SELECT 1 FROM delays d WHERE d.task_id = tasks.id \
     AND d.not_before = tasks.not_before AND d.boot_id = ?2)";

/// End of a task's pause.
pub(crate) struct Delay<'a> {
    pub(crate) task: &'a TaskId,
    /// End on the real-time clock, equal to the task's `not_before`. A task with another value waits for something else
    /// by now.
    pub(crate) not_before: Timestamp,
    pub(crate) boot_id: &'a str,
    /// End in microseconds since that boot.
    pub(crate) due_us: i64,
}

impl Tx<'_> {
    /// Stores the end of a pause, in place of an earlier one.
    pub(crate) fn put_delay(&self, delay: &Delay<'_>) -> Result<(), Error> {
        let Delay { task, not_before, boot_id, due_us } = delay;
        self.conn.run("keep the end of a pause", "INSERT OR REPLACE INTO delays (task_id, not_before, boot_id, due_boottime_us) VALUES (?1, ?2, ?3, ?4)", params![task, not_before, boot_id, due_us])
    }

    /// Removes the pauses that are over on this boot's clock, and returns the tasks that still wait for them.
    pub(crate) fn take_due_delays(
        &self,
        boot_id: &str,
        now_us: i64,
        limit: u32,
    ) -> Result<Vec<TaskId>, Error> {
        let due: Vec<(TaskId, bool)> = self.conn.list(
            "list the pauses that are over",
            "SELECT d.task_id, t.id IS NOT NULL FROM delays d LEFT JOIN tasks t ON t.id = d.task_id \
               AND t.not_before = d.not_before AND t.status IN ('scheduled', 'review') \
             WHERE d.boot_id = ?1 AND d.due_boottime_us <= ?2 ORDER BY d.due_boottime_us LIMIT ?3",
            params![boot_id, now_us, limit],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (task, _) in &due {
            self.conn.run("forget a pause", "DELETE FROM delays WHERE task_id = ?1", [task])?;
        }
        Ok(due.into_iter().filter(|(_, waits)| *waits).map(|(task, _)| task).collect())
    }

    /// Returns the end of the next pause of this boot, in microseconds since boot. A review that is due needs no wake-up.
    pub(crate) fn next_delay(&self, boot_id: &str, now: Timestamp) -> Result<Option<i64>, Error> {
        self.conn.find(
            "read the next end of a pause",
            "SELECT d.due_boottime_us FROM delays d JOIN tasks t ON t.id = d.task_id \
                   AND t.not_before = d.not_before \
                   AND (t.status = 'scheduled' OR (t.status = 'review' AND t.not_before > ?2)) \
                 WHERE d.boot_id = ?1 ORDER BY d.due_boottime_us LIMIT 1",
            params![boot_id, now],
            |row| row.get(0),
        )
    }

    /// Returns pauses of this boot whose end on the real-time clock is off by more than `tolerance_us`, with their ends
    /// in microseconds since boot. `booted` is the start of this boot on the real-time clock, as it shows now.
    pub(crate) fn displaced_delays(
        &self,
        boot_id: &str,
        booted: Timestamp,
        tolerance_us: i64,
        limit: u32,
    ) -> Result<Vec<(TaskId, i64)>, Error> {
        self.conn.list(
            "list the pauses that the clock has left",
            "SELECT d.task_id, d.due_boottime_us FROM delays d JOIN tasks t ON t.id = d.task_id \
                   AND t.not_before = d.not_before AND t.status IN ('scheduled', 'review') \
                 WHERE d.boot_id = ?1 AND abs(d.not_before - d.due_boottime_us - ?2) > ?3 LIMIT ?4",
            params![boot_id, booted, tolerance_us, limit],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Removes the pauses of other boots. Their clock is gone, so the time of the task counts.
    pub(crate) fn forget_delays_of_other_boots(&self, boot_id: &str) -> Result<(), Error> {
        self.conn.run(
            "forget the pauses of another boot",
            "DELETE FROM delays WHERE boot_id <> ?1",
            [boot_id],
        )
    }
}
