//! What missions have used, and whose work led to a task.

use std::time::Duration;

use rusqlite::{Row, params};

use super::convert::micros;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::mission::Used;

fn read(row: &Row<'_>) -> rusqlite::Result<Used> {
    let count = |column: &str| row.get::<_, i64>(column).map(|count| count.max(0).unsigned_abs());
    Ok(Used {
        tasks: count("tasks")?,
        runtime: Duration::from_micros(count("runtime_us")?),
        cost_micros: count("cost_micros")?,
        more_tasks: count("more_tasks")?,
        more_runtime: count("more_runtime")?,
        more_cost: count("more_cost")?,
    })
}

fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Tx<'_> {
    /// Returns what a mission has used, where it is one: a worker has made a task of it.
    pub(crate) fn mission(&self, name: &str) -> Result<Option<Used>, Error> {
        let sql = "SELECT tasks, runtime_us, cost_micros, more_tasks, more_runtime, more_cost FROM missions \
                   WHERE name = ?1";
        self.conn.find("read the mission", sql, [name], read)
    }

    fn has_missions(&self) -> Result<bool, Error> {
        let found = self.conn.find("look for missions", "SELECT 1 FROM missions LIMIT 1", [], |_| Ok(()))?;
        Ok(found.is_some())
    }

    /// Lists the missions that have open runs, each with what it has used, the time of these runs included, and how many these are.
    pub(crate) fn missions_at_work(&self, now: Timestamp) -> Result<Vec<(String, Used, u64)>, Error> {
        // Every open run is looked at, after each commit.
        if !self.has_missions()? {
            return Ok(Vec::new());
        }
        self.conn.list(
            "read the missions at work",
            "SELECT m.name, m.tasks, m.runtime_us + sum(max(?1 - r.started_at, 0)) AS runtime_us, m.cost_micros, m.more_tasks, \
               m.more_runtime, m.more_cost, count(*) AS runs \
             FROM task_runs r INDEXED BY task_runs_open_tenant CROSS JOIN tasks t ON t.id = r.task_id \
               CROSS JOIN missions m ON m.name = coalesce(t.mission, t.id) \
             WHERE r.ended_at IS NULL GROUP BY m.name ORDER BY m.name",
            [now],
            |row| Ok((row.get("name")?, read(row)?, row.get::<_, i64>("runs")?.max(1).unsigned_abs())),
        )
    }

    /// Notes that a task has become the first one of a mission, with what its runs have used so far.
    pub(crate) fn open_mission(&self, name: &str, first: &TaskId) -> Result<(), Error> {
        self.conn.run(
            "open the mission",
            "INSERT OR IGNORE INTO missions (name, tasks, runtime_us, cost_micros) VALUES (?1, 1, \
               (SELECT ifnull(sum(max(ended_at - started_at, 0)), 0) FROM task_runs \
                WHERE task_id = ?2 AND ended_at IS NOT NULL), \
               (SELECT ifnull(sum(cost_micros), 0) FROM run_usage WHERE task_id = ?2))",
            params![name, first],
        )
    }

    /// Counts another task of a mission.
    pub(crate) fn add_task_to_mission(&self, name: &str) -> Result<(), Error> {
        self.conn.run(
            "count the mission's tasks",
            "UPDATE missions SET tasks = tasks + 1 WHERE name = ?1",
            [name],
        )
    }

    /// Counts what a run of a mission has used. Returns what that has used by now, where it is one.
    pub(crate) fn add_to_mission(
        &self,
        name: &str,
        runtime: Duration,
        cost_micros: u64,
    ) -> Result<Option<Used>, Error> {
        let counted = self.conn.alter(
            "count what the mission uses",
            "UPDATE missions SET runtime_us = runtime_us + ?2, cost_micros = cost_micros + ?3 WHERE name = ?1",
            params![name, micros(runtime), stored(cost_micros)],
        )?;
        if counted { self.mission(name) } else { Ok(None) }
    }

    /// Stores how often a mission was granted as much again.
    pub(crate) fn grant_mission(&self, name: &str, used: &Used) -> Result<(), Error> {
        self.conn.run(
            "let the mission go on",
            "UPDATE missions SET more_tasks = ?2, more_runtime = ?3, more_cost = ?4 WHERE name = ?1",
            params![name, stored(used.more_tasks), stored(used.more_runtime), stored(used.more_cost)],
        )
    }

    /// Lists the questions that a run has asked and that are neither answered nor archived.
    pub(crate) fn open_consults(&self, run: RunId) -> Result<Vec<TaskId>, Error> {
        self.conn.list(
            "list the run's questions",
            "SELECT id FROM tasks WHERE creator_run = ?1 AND consult IS NOT NULL AND completed_at IS NULL \
               AND status <> 'archived' ORDER BY id",
            [run],
            |row| row.get(0),
        )
    }

    /// Lists the profiles whose runs made a task and those above it, the nearest first.
    pub(crate) fn makers_of(&self, task: &TaskId) -> Result<Vec<Profile>, Error> {
        self.conn.list(
            "read who made the task",
            "WITH RECURSIVE above (creator_task, creator_run, deep) AS (\
               SELECT creator_task, creator_run, 0 FROM tasks WHERE id = ?1 \
               UNION ALL SELECT t.creator_task, t.creator_run, a.deep + 1 FROM above a \
                 JOIN tasks t ON t.id = a.creator_task WHERE a.deep < 1000\
             ) SELECT r.profile FROM above a JOIN task_runs r ON r.id = a.creator_run \
               WHERE r.profile IS NOT NULL ORDER BY a.deep",
            [task],
            |row| row.get(0),
        )
    }
}
