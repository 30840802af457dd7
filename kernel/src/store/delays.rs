//! Pauses before another try, on the clock since boot: somebody who sets the other clock makes none longer or shorter.

use rusqlite::params;

use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::TaskId;

/// Whether a row of `tasks` waits for the end of a pause of the boot `?2`.
pub(super) const PAUSES: &str = "EXISTS (SELECT 1 FROM delays d WHERE d.task_id = tasks.id \
     AND d.not_before = tasks.not_before AND d.boot_id = ?2)";

/// The end of a task's pause.
pub(crate) struct Delay<'a> {
    pub(crate) task: &'a TaskId,
    /// The same moment as the task has it: a task that has another one by now waits for something else.
    pub(crate) not_before: Timestamp,
    pub(crate) boot_id: &'a str,
    /// In microseconds since that boot.
    pub(crate) due_us: i64,
}

impl Tx<'_> {
    /// Keeps the end of a pause, in the place of an earlier one.
    pub(crate) fn put_delay(&self, delay: &Delay<'_>) -> Result<(), Error> {
        let Delay { task, not_before, boot_id, due_us } = delay;
        self.conn.run("keep the end of a pause", "INSERT OR REPLACE INTO delays (task_id, not_before, boot_id, due_boottime_us) VALUES (?1, ?2, ?3, ?4)", params![task, not_before, boot_id, due_us])
    }

    /// Takes the pauses that are over on this boot's clock, and returns the tasks that still wait for them.
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

    /// Returns when the next pause of this boot is over, in microseconds since boot. A review whose moment has come needs
    /// nobody to wake it.
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

    /// Lists pauses of this boot whose moment on the real-time clock is off by more than `tolerance_us`, with their ends in
    /// microseconds since boot. `booted` is when this boot began on that clock, as it goes now.
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

    /// Forgets the pauses of other boots: their clock is gone, and the moment that the task has counts.
    pub(crate) fn forget_delays_of_other_boots(&self, boot_id: &str) -> Result<(), Error> {
        self.conn.run(
            "forget the pauses of another boot",
            "DELETE FROM delays WHERE boot_id <> ?1",
            [boot_id],
        )
    }
}
