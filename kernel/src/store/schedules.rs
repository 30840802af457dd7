//! Queries of schedules and their ticks.

use rusqlite::{Row, params};

use super::convert::{json, to_json};
use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{ScheduleName, TaskId};
use crate::model::schedule::{Schedule, ScheduleSpec, ScheduleTick, StuckSchedule};

/// Number of ticks of a schedule that are kept, beside the waiting ones.
const KEPT: u32 = 100;

const COLUMNS: &str = "name, spec, decided, ahead, next, defined_at";
const TICKS: &str = "tick, outcome, missed, more, tasks, note, decided_at";

fn read(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    Ok(Schedule {
        name: row.get("name")?,
        spec: json(row, "spec")?.unwrap_or_default(),
        decided: row.get("decided")?,
        ahead: row.get("ahead")?,
        next: row.get("next")?,
        defined_at: row.get("defined_at")?,
    })
}

fn read_tick(row: &Row<'_>) -> rusqlite::Result<ScheduleTick> {
    Ok(ScheduleTick {
        tick: row.get("tick")?,
        outcome: row.get("outcome")?,
        missed: row.get::<_, i64>("missed")?.unsigned_abs(),
        more: row.get("more")?,
        tasks: json(row, "tasks")?.unwrap_or_default(),
        note: row.get("note")?,
        decided_at: row.get("decided_at")?,
    })
}

impl Tx<'_> {
    /// Returns the schedules by name.
    pub(crate) fn schedules(&self) -> Result<Vec<Schedule>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM schedules ORDER BY name");
        self.conn.list("list the schedules", &sql, [], read)
    }

    pub(super) fn unread_schedules(&self) -> Result<Vec<String>, Error> {
        let mut found = unread(self.conn, "schedules", &format!("SELECT {COLUMNS} FROM schedules"), read)?;
        let ticks = format!("SELECT id, {TICKS} FROM schedule_ticks");
        found.extend(unread(self.conn, "schedule_ticks", &ticks, read_tick)?);
        Ok(found)
    }

    pub(crate) fn find_schedule(&self, name: &ScheduleName) -> Result<Option<Schedule>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM schedules WHERE name = ?1");
        self.conn.find("read the schedule", &sql, [name], read)
    }

    /// Returns schedules with a due tick, the longest due first.
    pub(crate) fn due_schedules(&self, now: Timestamp, limit: u32) -> Result<Vec<Schedule>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM schedules INDEXED BY schedules_next WHERE next <= ?1 ORDER BY next LIMIT ?2"
        );
        self.conn.list("list due schedules", &sql, params![now, limit], read)
    }

    /// Returns the time of the next tick of all schedules.
    pub(crate) fn next_tick(&self) -> Result<Option<Timestamp>, Error> {
        let sql = "SELECT min(next) FROM schedules INDEXED BY schedules_next WHERE next IS NOT NULL";
        self.conn.value("read the next tick", sql, [])
    }

    /// Stores a schedule, in place of a schedule with its name.
    pub(crate) fn store_schedule(&self, schedule: &Schedule) -> Result<(), Error> {
        let Schedule { name, spec, decided, ahead, next, defined_at } = schedule;
        self.conn.run(
            "store the schedule",
            "INSERT INTO schedules (name, spec, decided, next, defined_at, ahead) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (name) DO UPDATE SET spec = ?2, decided = ?3, next = ?4, ahead = ?6",
            params![name, to_json::<ScheduleSpec>(spec)?, decided, next, defined_at, ahead],
        )
    }

    /// Stores the time up to which the ticks of a schedule are decided, and the next tick.
    pub(crate) fn set_decided(
        &self,
        name: &ScheduleName,
        decided: Timestamp,
        next: Option<Timestamp>,
    ) -> Result<(), Error> {
        let sql = "UPDATE schedules SET decided = ?2, next = ?3, ahead = CASE WHEN ahead > ?2 THEN ahead END \
             WHERE name = ?1";
        self.conn.run("note the decided ticks", sql, params![name, decided, next])
    }

    /// Brings the decided ticks of a schedule back to a time, and keeps how far they went.
    pub(crate) fn recall_schedule(
        &self,
        name: &ScheduleName,
        decided: Timestamp,
        next: Option<Timestamp>,
    ) -> Result<(), Error> {
        let sql = "UPDATE schedules SET ahead = max(ifnull(ahead, decided), decided), decided = ?2, next = ?3 \
             WHERE name = ?1";
        self.conn.run("recompute the ticks", sql, params![name, decided, next])
    }

    pub(crate) fn delete_schedule(&self, name: &ScheduleName) -> Result<(), Error> {
        self.conn.run("forget the ticks", "DELETE FROM schedule_ticks WHERE schedule = ?1", [name])?;
        self.conn.run("forget the schedule", "DELETE FROM schedules WHERE name = ?1", [name])
    }

    /// Stores a new tick, and removes the oldest.
    pub(crate) fn insert_tick(&self, name: &ScheduleName, tick: &ScheduleTick) -> Result<(), Error> {
        let missed = i64::try_from(tick.missed).unwrap_or(i64::MAX);
        self.conn.run(
            "store the tick",
            "INSERT INTO schedule_ticks (schedule, tick, outcome, missed, more, tasks, note, decided_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                name,
                tick.tick,
                tick.outcome,
                missed,
                tick.more,
                to_json(&tick.tasks)?,
                tick.note,
                tick.decided_at
            ],
        )?;
        self.conn.run(
            "forget old ticks",
            "DELETE FROM schedule_ticks WHERE schedule = ?1 AND outcome NOT IN ('queued', 'due') AND id < \
               (SELECT id FROM schedule_ticks WHERE schedule = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
            params![name, KEPT],
        )
    }

    /// Stores the result of a tick that has waited.
    pub(crate) fn settle_tick(&self, name: &ScheduleName, tick: &ScheduleTick) -> Result<(), Error> {
        self.conn.run(
            "store the tick",
            "UPDATE schedule_ticks SET outcome = ?3, tasks = ?4, note = ?5, decided_at = ?6 WHERE schedule = ?1 AND tick = ?2",
            params![name, tick.tick, tick.outcome, to_json(&tick.tasks)?, tick.note, tick.decided_at],
        )
    }

    /// Returns the ticks of a schedule that were decided last, the newest first. The order of decision is not the order
    /// of time once the clock was set back.
    pub(crate) fn ticks_of(&self, name: &ScheduleName, limit: u32) -> Result<Vec<ScheduleTick>, Error> {
        let sql = format!("SELECT {TICKS} FROM schedule_ticks WHERE schedule = ?1 ORDER BY id DESC LIMIT ?2");
        self.conn.list("list the ticks", &sql, params![name, limit], read_tick)
    }

    /// Returns the active schedules whose latest executed tick failed, each with that tick.
    pub(crate) fn failed_schedules(&self) -> Result<Vec<(ScheduleName, ScheduleTick)>, Error> {
        let sql = format!(
            "SELECT schedule, {TICKS} FROM schedule_ticks WHERE outcome = 'failed' AND id IN (SELECT \
               (SELECT id FROM schedule_ticks t WHERE t.schedule = s.name AND t.outcome IN ('made', 'failed') \
                ORDER BY t.id DESC LIMIT 1) \
             FROM schedules s WHERE json_extract(s.spec, '$.paused') IS NOT 1) ORDER BY schedule"
        );
        self.conn.list("list failed schedules", &sql, [], |row| Ok((row.get("schedule")?, read_tick(row)?)))
    }

    /// Returns the active schedules whose latest tick was skipped or waits, and whose open tasks can do nothing: one
    /// waits for a person, and the others do as well or wait for their parents.
    pub(crate) fn stuck_schedules(&self) -> Result<Vec<StuckSchedule>, Error> {
        // A review without a reviewer and without a check is a person's.
        let waits = "(t.status IN ('blocked', 'triage') \
            OR (t.status = 'review' AND t.reviewer IS NULL AND t.unchecked_run IS NULL))";
        let stuck = format!(
            "SELECT k.schedule, {TICKS}, \
               (SELECT t.id FROM tasks t INDEXED BY tasks_schedule WHERE t.schedule = s.name AND {waits} \
                AND t.status NOT IN ('done', 'archived') ORDER BY t.tick, t.id LIMIT 1) AS waiting \
             FROM schedules s JOIN schedule_ticks k ON k.id = (SELECT l.id FROM schedule_ticks l \
               WHERE l.schedule = s.name ORDER BY l.tick DESC LIMIT 1) \
             WHERE k.outcome IN ('skipped', 'queued') AND NOT s.spec ->> 'paused' AND waiting IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM tasks t INDEXED BY tasks_schedule WHERE t.schedule = s.name \
               AND t.status NOT IN ('done', 'archived') AND NOT {waits} AND t.status <> 'todo')"
        );
        let sql = format!(
            "SELECT s.*, t.status FROM ({stuck}) s JOIN tasks t ON t.id = s.waiting ORDER BY s.schedule"
        );
        let read = |row: &Row<'_>| {
            Ok(StuckSchedule {
                name: row.get("schedule")?,
                tick: read_tick(row)?,
                task: row.get("waiting")?,
                status: row.get("status")?,
            })
        };
        self.conn.list("list stuck schedules", &sql, [], read)
    }

    pub(crate) fn find_tick(
        &self,
        name: &ScheduleName,
        at: Timestamp,
    ) -> Result<Option<ScheduleTick>, Error> {
        let sql = format!("SELECT {TICKS} FROM schedule_ticks WHERE schedule = ?1 AND tick = ?2");
        self.conn.find("read the tick", &sql, params![name, at], read_tick)
    }

    /// Returns ticks whose command is to be carried out, oldest first.
    pub(crate) fn due_ticks(&self, limit: u32) -> Result<Vec<(ScheduleName, Timestamp)>, Error> {
        let sql = "SELECT schedule, min(tick) FROM schedule_ticks INDEXED BY schedule_ticks_due \
             WHERE outcome = 'due' GROUP BY schedule ORDER BY min(tick) LIMIT ?1";
        self.conn.list("list due commands", sql, [limit], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    pub(crate) fn count_due(&self, name: &ScheduleName) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM schedule_ticks INDEXED BY schedule_ticks_due \
             WHERE outcome = 'due' AND schedule = ?1";
        self.conn.value::<i64>("count the due commands", sql, [name]).map(i64::unsigned_abs)
    }

    /// Returns the oldest waiting tick of a schedule.
    pub(crate) fn oldest_queued(&self, name: &ScheduleName) -> Result<Option<ScheduleTick>, Error> {
        let sql = format!(
            "SELECT {TICKS} FROM schedule_ticks INDEXED BY schedule_ticks_queued \
             WHERE schedule = ?1 AND outcome = 'queued' ORDER BY tick LIMIT 1"
        );
        self.conn.find("read the waiting tick", &sql, [name], read_tick)
    }

    pub(crate) fn count_queued(&self, name: &ScheduleName) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM schedule_ticks INDEXED BY schedule_ticks_queued \
             WHERE schedule = ?1 AND outcome = 'queued'";
        self.conn.value::<i64>("count the waiting ticks", sql, [name]).map(i64::unsigned_abs)
    }

    /// Returns the schedules with a waiting tick and without an open task.
    pub(crate) fn released_schedules(&self, limit: u32) -> Result<Vec<ScheduleName>, Error> {
        self.conn.list(
            "look for waiting ticks",
            "SELECT DISTINCT q.schedule FROM schedule_ticks q INDEXED BY schedule_ticks_queued \
             WHERE q.outcome = 'queued' AND NOT EXISTS (SELECT 1 FROM tasks t INDEXED BY tasks_schedule \
               WHERE t.schedule = q.schedule AND t.status NOT IN ('done', 'archived')) \
             AND EXISTS (SELECT 1 FROM schedules s WHERE s.name = q.schedule AND NOT s.spec ->> 'paused') LIMIT ?1",
            [limit],
            |row| row.get(0),
        )
    }

    /// Returns the open tasks of a schedule, oldest tick first.
    pub(crate) fn open_of_schedule(&self, name: &ScheduleName, limit: u32) -> Result<Vec<TaskId>, Error> {
        self.conn.list(
            "list the open tasks of the schedule",
            "SELECT id FROM tasks INDEXED BY tasks_schedule \
             WHERE schedule = ?1 AND status NOT IN ('done', 'archived') ORDER BY tick, id LIMIT ?2",
            params![name, limit],
            |row| row.get(0),
        )
    }
}
