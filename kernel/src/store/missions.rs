//! Use of missions, their tasks and runs, and the profiles that delegated a task.

use std::time::Duration;

use rusqlite::{Connection, Row, params};

use super::convert::{amount, micros};
use super::statement::Statement as _;
use super::tasks;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{Profile, RunId, TaskId, Tenant};
use crate::model::mission::{MissionCaps, Used};
use crate::model::status::Status;
use crate::model::task::Task;

/// Columns of a mission's use.
const USED: &str = "tasks, runtime_us, cost_micros, more_tasks, more_runtime, more_cost, wanted_tasks, wanted_depth, max_tasks, max_depth, \
    max_runtime_us, max_cost_micros";

/// Query that computes the open runs of each mission from the runs.
const OPEN: &str = "SELECT m.name, count(r.id) AS open_runs, ifnull(sum(r.started_at / 1000), 0) AS open_since_ms \
    FROM missions m LEFT JOIN (tasks t JOIN task_runs r ON r.task_id = t.id AND r.ended_at IS NULL) \
      ON m.name = coalesce(t.mission, t.id) GROUP BY m.name";

/// Common table expression with the tasks of the mission ?1, for queries that compute its use from runs.
const WITH_TASKS: &str = "WITH of_it (task) AS (SELECT ?1 UNION ALL SELECT id FROM tasks WHERE mission = ?1)";

/// Time of the ended runs of these tasks.
const ENDED_US: &str = "(SELECT ifnull(sum(max(ended_at - started_at, 0)), 0) FROM task_runs \
    WHERE ended_at IS NOT NULL AND task_id IN (SELECT task FROM of_it))";

/// Cost of the runs of these tasks.
const COST: &str = "(SELECT ifnull(sum(min(cost_micros, 1 << 46)), 0) FROM run_usage WHERE task_id IN (SELECT task FROM of_it))";

/// Open runs of these tasks.
const OPEN_OF: &str = "FROM task_runs WHERE ended_at IS NULL AND task_id IN (SELECT task FROM of_it)";

fn read(row: &Row<'_>) -> rusqlite::Result<Used> {
    let count = |column: &str| row.get::<_, i64>(column).map(|count| count.max(0).unsigned_abs());
    Ok(Used {
        tasks: count("tasks")?,
        runtime: Duration::from_micros(count("runtime_us")?),
        cost_micros: count("cost_micros")?,
        more_tasks: count("more_tasks")?,
        more_runtime: count("more_runtime")?,
        more_cost: count("more_cost")?,
        wanted_tasks: count("wanted_tasks")?,
        wanted_depth: row.get("wanted_depth")?,
        caps: MissionCaps {
            max_depth: row.get("max_depth")?,
            max_tasks: limit(row, "max_tasks")?,
            max_runtime: limit(row, "max_runtime_us")?.map(Duration::from_micros),
            max_cost_micros: limit(row, "max_cost_micros")?,
        },
    })
}

fn limit(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(column).map(|limit| limit.map(|limit| limit.max(0).unsigned_abs()))
}

fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Tx<'_> {
    /// Returns the use of a mission; none for a task that is no mission.
    pub(crate) fn mission(&self, name: &str) -> Result<Option<Used>, Error> {
        let sql = format!("SELECT {USED} FROM missions WHERE name = ?1");
        self.conn.find("read the mission", &sql, [name], read)
    }

    /// Returns the missions with open runs, each with its use, the time of open runs included, and the number of open
    /// runs. Reads only these missions' rows, for any number of runs.
    pub(crate) fn missions_at_work(&self, now: Timestamp) -> Result<Vec<(String, Used, u64)>, Error> {
        self.conn.list(
            "read the missions at work",
            &format!(
                "SELECT name, open_runs, max(?1 * open_runs - open_since_ms * 1000, 0) AS open_us, {USED} \
                 FROM missions INDEXED BY missions_at_work WHERE open_runs > 0 ORDER BY name"
            ),
            [now],
            |row| {
                let mut used = read(row)?;
                used.runtime += Duration::from_micros(row.get::<_, i64>("open_us")?.max(0).unsigned_abs());
                Ok((row.get("name")?, used, row.get::<_, i64>("open_runs")?.max(1).unsigned_abs()))
            },
        )
    }

    /// Returns the use of a mission, the time of its open runs included.
    pub(crate) fn mission_now(&self, name: &str, now: Timestamp) -> Result<Option<Used>, Error> {
        let sql = format!(
            "SELECT max(?2 * open_runs - open_since_ms * 1000, 0) AS open_us, {USED} FROM missions WHERE name = ?1"
        );
        self.conn.find("read the mission", &sql, params![name, now], |row| {
            let mut used = read(row)?;
            used.runtime += Duration::from_micros(row.get::<_, i64>("open_us")?.max(0).unsigned_abs());
            Ok(used)
        })
    }

    /// Returns the name of a task's mission, which is the task itself outside of a mission; none for a task that does not
    /// exist.
    pub(crate) fn mission_of(&self, task: &TaskId) -> Result<Option<String>, Error> {
        let sql = "SELECT coalesce(mission, id) FROM tasks WHERE id = ?1";
        self.conn.find("read the mission of the task", sql, [task], |row| row.get(0))
    }

    /// Counts a newly opened run in its task's mission.
    pub(super) fn count_opened(&self, task: &TaskId, now: Timestamp) -> Result<(), Error> {
        self.conn.run(
            "count the mission's open runs",
            "UPDATE missions SET open_runs = open_runs + 1, open_since_ms = open_since_ms + ?2 / 1000 \
             WHERE name = (SELECT coalesce(mission, id) FROM tasks WHERE id = ?1)",
            params![task, now],
        )
    }

    /// Counts a run that is about to be closed in its task's mission.
    pub(super) fn count_closed(&self, run: RunId) -> Result<(), Error> {
        self.conn.run(
            "count the mission's open runs",
            "UPDATE missions SET open_runs = open_runs - 1, open_since_ms = open_since_ms - over.since \
             FROM (SELECT coalesce(t.mission, t.id) AS name, r.started_at / 1000 AS since FROM task_runs r \
                   JOIN tasks t ON t.id = r.task_id WHERE r.id = ?1 AND r.ended_at IS NULL) AS over \
             WHERE missions.name = over.name",
            [run],
        )
    }

    /// Makes a task the first task of a mission, with the use of its runs so far.
    pub(crate) fn open_mission(&self, name: &str) -> Result<(), Error> {
        let sql = format!(
            "{WITH_TASKS} INSERT OR IGNORE INTO missions (name, tasks, runtime_us, cost_micros, open_runs, open_since_ms) \
               SELECT ?1, 1, {ENDED_US}, {COST}, (SELECT count(*) {OPEN_OF}), (SELECT ifnull(sum(started_at / 1000), 0) {OPEN_OF})"
        );
        self.conn.run("open the mission", &sql, [name])
    }

    /// Returns the use of a task that is no mission, the time of its open run included, and true if an agent works on it:
    /// a worker that reports its use.
    pub(crate) fn use_of_undivided(&self, name: &str, now: Timestamp) -> Result<(Used, bool), Error> {
        let sql = format!(
            "{WITH_TASKS} SELECT {ENDED_US} AS ended_us, {COST} AS cost_micros, \
               (SELECT ifnull(sum(max(?2 - started_at, 0)), 0) {OPEN_OF}) AS open_us, \
               EXISTS (SELECT 1 FROM run_usage WHERE task_id IN (SELECT task FROM of_it)) AS is_agents"
        );
        self.conn.fetch("read what the task has used", &sql, params![name, now], |row| {
            let count = |column: &str| row.get::<_, i64>(column).map(|count| count.max(0).unsigned_abs());
            let runtime = Duration::from_micros(count("ended_us")?.saturating_add(count("open_us")?));
            let used = Used { tasks: 1, runtime, cost_micros: count("cost_micros")?, ..Used::default() };
            Ok((used, row.get("is_agents")?))
        })
    }

    /// Returns true if no task of a mission is to be done any more.
    pub(crate) fn is_mission_over(&self, name: &str) -> Result<bool, Error> {
        let sql = format!(
            "{WITH_TASKS} SELECT NOT EXISTS (SELECT 1 FROM tasks WHERE id IN (SELECT task FROM of_it) \
               AND status NOT IN ('done', 'archived') AND NOT cancelled)"
        );
        self.conn.value("look for open tasks of the mission", &sql, [name])
    }

    /// Counts another task of a mission.
    pub(crate) fn add_task_to_mission(&self, name: &str) -> Result<(), Error> {
        self.conn.run(
            "count the mission's tasks",
            "UPDATE missions SET tasks = tasks + 1 WHERE name = ?1",
            [name],
        )
    }

    /// Adds use to a mission. Returns the new sum; none for a task that is no mission.
    pub(crate) fn add_to_mission(
        &self,
        name: &str,
        runtime: Duration,
        cost_micros: u64,
    ) -> Result<Option<Used>, Error> {
        let counted = self.conn.alter(
            "count what the mission uses",
            "UPDATE missions SET runtime_us = runtime_us + ?2, cost_micros = min(cost_micros + ?3, ?4) WHERE name = ?1",
            params![name, micros(runtime), amount(cost_micros), amount(u64::MAX)],
        )?;
        if counted { self.mission(name) } else { Ok(None) }
    }

    /// Stores the grants of a mission.
    pub(crate) fn grant_mission(&self, name: &str, used: &Used) -> Result<(), Error> {
        self.conn.run(
            "let the mission go on",
            "UPDATE missions SET more_tasks = ?2, more_runtime = ?3, more_cost = ?4, max_depth = ?5, wanted_tasks = 0, \
               wanted_depth = 0 WHERE name = ?1",
            params![
                name,
                stored(used.more_tasks),
                stored(used.more_runtime),
                stored(used.more_cost),
                used.caps.max_depth
            ],
        )
    }

    /// Stores the number of tasks of a proposal that exceeded the limit of its mission.
    pub(crate) fn want_tasks(&self, name: &str, wanted: u64) -> Result<(), Error> {
        self.conn.run(
            "note what the proposal wants",
            "UPDATE missions SET wanted_tasks = ?2 WHERE name = ?1",
            params![name, stored(wanted)],
        )
    }

    /// Stores the depth of a task that exceeded the limit of its mission.
    pub(crate) fn want_depth(&self, name: &str, deep: u32) -> Result<(), Error> {
        let sql = "UPDATE missions SET wanted_depth = ?2 WHERE name = ?1";
        self.conn.run("note how deep the mission wants to go", sql, params![name, deep])
    }

    /// Stores a mission's own limits.
    pub(crate) fn cap_mission(&self, name: &str, caps: &MissionCaps) -> Result<(), Error> {
        self.conn.run(
            "store the mission's limits",
            "UPDATE missions SET max_tasks = ?2, max_depth = ?3, max_runtime_us = ?4, max_cost_micros = ?5 WHERE name = ?1",
            params![
                name,
                caps.max_tasks.map(stored),
                caps.max_depth,
                caps.max_runtime.map(micros),
                caps.max_cost_micros.map(stored)
            ],
        )
    }

    /// Returns at most `limit` missions by their first tasks, the newest first: of one tenant, or of all.
    pub(crate) fn list_missions(&self, tenant: Option<&Tenant>, limit: u32) -> Result<Vec<Task>, Error> {
        self.conn.list(
            "list the missions",
            &format!(
                "SELECT {} {} WHERE (?1 IS NULL OR t.tenant = ?1) ORDER BY t.created_at DESC, t.id LIMIT ?2",
                tasks::COLUMNS,
                from_missions()
            ),
            params![tenant.map(Tenant::as_str), limit],
            tasks::read,
        )
    }

    /// Returns at most `limit` tasks of a mission, the first task first and the others by age.
    pub(crate) fn tasks_of_mission(&self, name: &str, limit: u32) -> Result<Vec<Task>, Error> {
        let (columns, from) = (tasks::COLUMNS, tasks::FROM);
        self.conn.list(
            "list the tasks of the mission",
            &format!(
                "SELECT {columns} {from} WHERE t.id = ?1 OR t.mission = ?1 ORDER BY t.id <> ?1, t.created_at, t.id LIMIT ?2"
            ),
            params![name, limit],
            tasks::read,
        )
    }

    /// Returns the number of a mission's tasks in each status, in total and done.
    pub(crate) fn count_mission(&self, name: &str) -> Result<Vec<(Status, u64, u64)>, Error> {
        self.conn.list(
            "count the tasks of the mission",
            "SELECT status, count(*), count(completed_at) FROM (\
               SELECT status, completed_at FROM tasks WHERE id = ?1 \
               UNION ALL SELECT status, completed_at FROM tasks WHERE mission = ?1) GROUP BY status",
            [name],
            |row| {
                let count = |at| row.get::<_, i64>(at).map(|count: i64| count.max(0).unsigned_abs());
                Ok((row.get(0)?, count(1)?, count(2)?))
            },
        )
    }

    /// Returns the open runs of a mission.
    pub(crate) fn open_runs_of_mission(&self, name: &str) -> Result<Vec<(RunId, TaskId)>, Error> {
        self.conn.list(
            "list the open runs of the mission",
            "SELECT current_run_id, id FROM tasks WHERE id = ?1 AND current_run_id IS NOT NULL \
             UNION ALL SELECT current_run_id, id FROM tasks WHERE mission = ?1 AND current_run_id IS NOT NULL",
            [name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Returns the consults of a run that are neither answered nor archived.
    pub(crate) fn open_consults(&self, run: RunId) -> Result<Vec<TaskId>, Error> {
        self.conn.list(
            "list the run's questions",
            "SELECT id FROM tasks WHERE creator_run = ?1 AND consult IS NOT NULL AND completed_at IS NULL \
               AND status <> 'archived' ORDER BY id",
            [run],
            |row| row.get(0),
        )
    }

    /// Returns the profiles whose runs made a task and the tasks above it, the nearest first.
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

/// Returns the tables of the columns of the first tasks of missions. The missions are read first, because a board has fewer
/// of them than tasks.
pub(super) fn from_missions() -> String {
    tasks::FROM.replacen("FROM tasks t", "FROM missions m CROSS JOIN tasks t ON t.id = m.name", 1)
}

/// Returns the number of missions with a wrong count of open runs. Reads all tasks.
pub(crate) fn wrong(conn: &Connection) -> rusqlite::Result<i64> {
    let sql =
        format!("SELECT count(*) FROM (SELECT name, open_runs, open_since_ms FROM missions EXCEPT {OPEN})");
    conn.query_row(&sql, [], |row| row.get(0))
}

/// Counts the open runs of all missions anew.
pub(super) fn recount(conn: &Connection) -> rusqlite::Result<()> {
    let sql = format!(
        "UPDATE missions SET open_runs = o.open_runs, open_since_ms = o.open_since_ms FROM ({OPEN}) AS o \
         WHERE o.name = missions.name"
    );
    conn.execute(&sql, []).map(drop)
}
