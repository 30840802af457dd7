//! Queries of runs.

use std::time::Duration;

use rusqlite::{Connection, ToSql, params, params_from_iter};
use serde_json::Value;

use super::columns::{self, Group as _, columns};
use super::convert::{StoredTenant, json, micros, to_json, to_json_or_null};
use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::filter::Excerpt;
use crate::model::id::{Profile, RunId, TaskId, Tenant};
use crate::model::limits::{self, ReplyCapacity};
use crate::model::measured::{Measured, measured};
use crate::model::outcome::{Finished, Outcome, StopReason};
use crate::model::run::{Holder, Purpose, Run, RunStatus};
use crate::model::task::Task;
use crate::model::time_limit::TimeLimit;
use crate::model::verdict::{Handoff, Verdict};

/// Declares the columns of a run: those with code of their own, then the measured facts.
macro_rules! run_columns {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        columns! {
            COLUMNS, read -> Run from "";
            "": task_id, profile, purpose, step_key, status, outcome, summary, error, metadata as json, worker_pid,
                started_at, spawned_at, ended_at, claim_lock, claim_expires, last_heartbeat_at,
                max_runtime_seconds = max_runtime_us as seconds, max_runtime_from, exit_code, signal, log_path, workspace_path,
                sandbox as json, usage as json, evidence as json, verdict as json, ending_since, stop_reason, holder, nonce, policy,
                tenant as optional, branch_name, worker_uid, boot_id, stderr_tail, account, tries;
            measured: Measured { $($name),* };
            spent: None, egress: None
        }
    };
}

measured!(run_columns);

pub(super) fn query(conn: &Connection, rest: &str, params: impl rusqlite::Params) -> Result<Vec<Run>, Error> {
    conn.list("read runs", &format!("SELECT {COLUMNS} FROM task_runs {rest}"), params, read)
}

fn one(conn: &Connection, rest: &str, params: impl rusqlite::Params) -> Result<Option<Run>, Error> {
    conn.find("read the run", &format!("SELECT {COLUMNS} FROM task_runs {rest}"), params, read)
}

pub(crate) struct NewRun<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) tenant: Option<&'a Tenant>,
    pub(crate) profile: Option<&'a Profile>,
    pub(crate) step_key: Option<&'a str>,
    pub(crate) holder: Holder,
    pub(crate) purpose: Purpose,
    pub(crate) claim_lock: Option<&'a str>,
    pub(crate) claim: Option<Lease>,
    pub(crate) token_hash: Option<[u8; 32]>,
    pub(crate) nonce: Option<&'a str>,
    pub(crate) policy: Option<&'a str>,
    pub(crate) account: Option<&'a str>,
    pub(crate) log_path: Option<&'a str>,
    pub(crate) max_runtime: Option<TimeLimit>,
    pub(crate) boot_id: &'a str,
    pub(crate) deadline_boottime: Option<Duration>,
    pub(crate) now: Timestamp,
}

impl<'a> NewRun<'a> {
    /// Returns a run of the supervisor with neither a claim nor a process.
    pub(crate) fn by_supervisor(task: &'a Task, purpose: Purpose, boot_id: &'a str, now: Timestamp) -> Self {
        NewRun {
            task: &task.id,
            tenant: task.tenant.as_ref(),
            profile: task.performer(purpose),
            step_key: task.client.current_step_key.as_deref(),
            holder: Holder::Supervisor,
            purpose,
            claim_lock: None,
            claim: None,
            token_hash: None,
            nonce: None,
            policy: None,
            account: None,
            log_path: None,
            max_runtime: None,
            boot_id,
            deadline_boottime: None,
            now,
        }
    }
}

/// Lifetime of an external claim.
#[derive(Clone, Copy)]
pub(crate) struct Lease {
    pub(crate) ttl: Duration,
    pub(crate) expires: Timestamp,
    pub(crate) expires_boottime: Duration,
}

/// Fields of a run that its end sets.
pub(crate) struct Close<'a> {
    pub(crate) summary: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    pub(crate) metadata: Option<&'a Value>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) measured: Measured,
    pub(crate) usage: Option<&'a Value>,
    pub(crate) evidence: Option<&'a Value>,
    pub(crate) stderr_tail: Option<&'a str>,
    pub(crate) finished: &'a Finished,
    pub(crate) ended_at: Timestamp,
}

impl<'a> Close<'a> {
    /// Returns the end of a run without a known process.
    pub(crate) fn without_process(
        finished: &'a Finished,
        handoff: Option<&'a Handoff>,
        error: Option<&'a str>,
        ended_at: Timestamp,
    ) -> Self {
        Self {
            summary: handoff.and_then(|handoff| handoff.summary.as_deref().or(handoff.result.as_deref())),
            error,
            metadata: handoff.and_then(|handoff| handoff.metadata.as_ref()),
            exit_code: None,
            signal: None,
            measured: Measured::default(),
            usage: None,
            evidence: None,
            stderr_tail: None,
            finished,
            ended_at,
        }
    }
}

impl Tx<'_> {
    pub(crate) fn find_run(&self, id: RunId) -> Result<Option<Run>, Error> {
        one(self.conn, "WHERE id = ?1", [id])
    }

    pub(crate) fn runs_of(&self, task: &TaskId) -> Result<Vec<Run>, Error> {
        query(self.conn, "WHERE task_id = ?1 ORDER BY id", [task])
    }

    /// Returns the number of a task's runs.
    pub(crate) fn count_runs(&self, task: &TaskId) -> Result<u64, Error> {
        let count: i64 =
            self.conn.value("count runs", "SELECT count(*) FROM task_runs WHERE task_id = ?1", [task])?;
        Ok(count.unsigned_abs())
    }

    /// Returns the end of a task's last run.
    pub(crate) fn last_run_ended(&self, task: &TaskId) -> Result<Option<Timestamp>, Error> {
        let sql = "SELECT ended_at FROM task_runs WHERE task_id = ?1 ORDER BY id DESC LIMIT 1";
        self.conn.find("read the end of the last run", sql, [task], |row| row.get(0)).map(Option::flatten)
    }

    /// Returns the latest runs of a task, oldest first. The newest have their texts, as far as there is space.
    pub(crate) fn latest_runs(&self, task: &TaskId, capacity: ReplyCapacity) -> Result<Excerpt<Run>, Error> {
        let limit = limits::REPLY_ROWS;
        let mut part =
            within(self.conn, "ORDER BY id DESC LIMIT ?2", params![task, limit + 1], capacity, limit)?;
        part.rows.reverse();
        self.with_spent(part)
    }

    /// Returns up to `limit` runs of a task after a given run, oldest first. They have their texts, as far as there is
    /// space.
    pub(crate) fn runs_after(
        &self,
        task: &TaskId,
        after: RunId,
        limit: u32,
        capacity: ReplyCapacity,
    ) -> Result<Excerpt<Run>, Error> {
        let part = within(
            self.conn,
            "AND id > ?2 ORDER BY id LIMIT ?3",
            params![task, after, limit + 1],
            capacity,
            limit,
        )?;
        self.with_spent(part)
    }

    /// Returns all open runs, of the supervisor and of others, with their use so far.
    pub(crate) fn open_runs_with_spent(&self) -> Result<Vec<Run>, Error> {
        let mut runs = self.open_runs()?;
        let (mut spent, mut egress) = (self.spent_of_open_runs()?, self.egress_of_open_runs()?);
        for run in &mut runs {
            run.spent = spent.remove(&run.id);
            run.egress = egress.remove(&run.id);
        }
        Ok(runs)
    }

    fn with_spent(&self, mut part: Excerpt<Run>) -> Result<Excerpt<Run>, Error> {
        for run in &mut part.rows {
            run.spent = self.spent_of(run.id)?;
            run.egress = self.egress_of(run.id)?;
        }
        Ok(part)
    }

    pub(super) fn unread_runs(&self) -> Result<Vec<String>, Error> {
        unread(self.conn, "task_runs", &format!("SELECT {COLUMNS} FROM task_runs"), read)
    }

    pub(crate) fn open_runs(&self) -> Result<Vec<Run>, Error> {
        query(self.conn, "INDEXED BY task_runs_open_tenant WHERE ended_at IS NULL ORDER BY id", [])
    }

    pub(crate) fn runs_to_stop(&self) -> Result<Vec<Run>, Error> {
        query(
            self.conn,
            "INDEXED BY task_runs_stop \
         WHERE ended_at IS NULL AND holder = 'supervisor' AND stop_reason IS NOT NULL ORDER BY id",
            [],
        )
    }

    pub(crate) fn run_by_token(&self, hash: &[u8; 32]) -> Result<Option<Run>, Error> {
        one(self.conn, "WHERE token_hash = ?1 AND ended_at IS NULL", [hash.as_slice()])
    }

    pub(crate) fn run_by_past_token(&self, hash: &[u8; 32]) -> Result<Option<Run>, Error> {
        one(self.conn, "WHERE token_hash = ?1", [hash.as_slice()])
    }

    pub(crate) fn last_completed_run(&self, task: &TaskId) -> Result<Option<Run>, Error> {
        one(
            self.conn,
            "WHERE task_id = ?1 AND purpose = 'work' \
         AND outcome IN ('completed', 'review_requested') ORDER BY id DESC LIMIT 1",
            [task],
        )
    }

    /// Returns the lengths of a task's latest turns before a run, the last turn first, up to the first run that was no
    /// turn. The limit is above the number of turns that leads to the longest pause.
    pub(crate) fn lengths_of_turns(&self, task: &TaskId, before: RunId) -> Result<Vec<Duration>, Error> {
        let turns: Vec<(bool, Timestamp, Timestamp)> = self.conn.list(
            "read the lengths of turns",
            "SELECT outcome IN ('completed', 'unreported'), started_at, ended_at FROM task_runs \
         WHERE task_id = ?1 AND id < ?2 AND purpose = 'work' AND ended_at IS NOT NULL ORDER BY id DESC LIMIT 30",
            params![task, before],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let turns = turns.into_iter().take_while(|(is_turn, ..)| *is_turn);
        Ok(turns.map(|(_, from, to)| to.since(from)).collect())
    }

    /// Returns the open runs of these tasks that were asked to end.
    pub(crate) fn ending_runs_of(&self, tasks: &[&TaskId]) -> Result<Vec<(TaskId, RunId)>, Error> {
        let tasks = to_json(&tasks)?;
        self.conn.list(
            "read runs",
            "SELECT r.task_id, r.id FROM json_each(?1) j JOIN task_runs r ON r.task_id = j.value \
         WHERE r.ended_at IS NULL AND r.ending_since IS NOT NULL",
            [tasks],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Returns the tasks among these whose last run met a limit of its service, each with the exit code that reported it.
    pub(crate) fn limited_of(&self, tasks: &[&TaskId]) -> Result<Vec<(TaskId, Option<i32>)>, Error> {
        let tasks = to_json(&tasks)?;
        self.conn.list(
            "read runs",
            "SELECT r.task_id, r.exit_code FROM json_each(?1) j JOIN task_runs r \
         ON r.id = (SELECT max(id) FROM task_runs WHERE task_id = j.value) WHERE r.outcome = ?2",
            (tasks, Outcome::RateLimited),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Returns the tasks among these whose last run was blocked, each with the reason.
    pub(crate) fn blocked_of(&self, tasks: &[&TaskId]) -> Result<Vec<(TaskId, String)>, Error> {
        let tasks = to_json(&tasks)?;
        self.conn.list(
            "read runs",
            "SELECT r.task_id, r.error FROM json_each(?1) j JOIN task_runs r \
         ON r.id = (SELECT max(id) FROM task_runs WHERE task_id = j.value) WHERE r.outcome = ?2 AND r.error IS NOT NULL",
            (tasks, Outcome::Blocked),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    pub(crate) fn insert_run(&self, run: &NewRun<'_>) -> Result<RunId, Error> {
        let row: [(&str, &dyn ToSql); 21] = [
            ("task_id", run.task),
            ("tenant", &StoredTenant(run.tenant)),
            ("profile", &run.profile),
            ("step_key", &run.step_key),
            ("status", &RunStatus::Running),
            ("holder", &run.holder),
            ("purpose", &run.purpose),
            ("claim_lock", &run.claim_lock),
            ("claim_expires", &run.claim.map(|lease| lease.expires)),
            ("claim_expires_boottime_us", &run.claim.map(|lease| micros(lease.expires_boottime))),
            ("claim_ttl_us", &run.claim.map(|lease| micros(lease.ttl))),
            ("token_hash", &run.token_hash.map(|hash| hash.to_vec())),
            ("nonce", &run.nonce),
            ("log_path", &run.log_path),
            ("max_runtime_us", &run.max_runtime.map(|time| micros(time.limit))),
            ("max_runtime_from", &run.max_runtime.map(|time| time.from)),
            ("boot_id", &run.boot_id),
            ("deadline_boottime_us", &run.deadline_boottime.map(micros)),
            ("started_at", &run.now),
            ("policy", &run.policy),
            ("account", &run.account),
        ];
        let id = columns::insert(self.conn, "task_runs", &row, "open the run").map(RunId)?;
        self.count_opened(run.task, run.now)?;
        Ok(id)
    }

    /// Stores the verdict about an open run. Returns false if the run was not open.
    pub(crate) fn record_verdict(
        &self,
        id: RunId,
        verdict: &Verdict,
        by: &str,
        stop: StopReason,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.conn.alter(
            "record the verdict",
            "UPDATE task_runs SET status = 'ending', verdict = ?2, verdict_by = ?3, stop_reason = ?4, \
               ending_since = coalesce(ending_since, ?5) WHERE id = ?1 AND ended_at IS NULL",
            params![id, to_json(verdict)?, by, stop, now],
        )
    }

    /// Returns the author of a run's verdict.
    pub(crate) fn verdict_by(&self, id: RunId) -> Result<Option<String>, Error> {
        self.conn.value("read the run", "SELECT verdict_by FROM task_runs WHERE id = ?1", [id])
    }

    /// Stores the reason for which an open run has to end. Returns false if the run was not open.
    pub(crate) fn record_stop(&self, id: RunId, reason: StopReason, now: Timestamp) -> Result<bool, Error> {
        self.conn.alter("record the stop", "UPDATE task_runs SET status = 'ending', stop_reason = ?2, ending_since = coalesce(ending_since, ?3) \
         WHERE id = ?1 AND ended_at IS NULL", params![id, reason, now])
    }

    /// Stores the workspace of an open run. Returns its task; none if the run is not open.
    pub(crate) fn set_run_workspace(
        &self,
        id: RunId,
        path: &str,
        branch: Option<&str>,
        uid: Option<u32>,
    ) -> Result<Option<TaskId>, Error> {
        self.conn.find(
            "record the workspace",
            "UPDATE task_runs SET workspace_path = ?2, branch_name = ?3, worker_uid = ?4 \
         WHERE id = ?1 AND ended_at IS NULL RETURNING task_id",
            params![id, path, branch, uid],
            |row| row.get(0),
        )
    }

    pub(crate) fn set_log_path(&self, id: RunId, path: &str) -> Result<bool, Error> {
        self.conn.alter(
            "record the log",
            "UPDATE task_runs SET log_path = ?2 WHERE id = ?1 AND ended_at IS NULL",
            params![id, path],
        )
    }

    pub(crate) fn set_spawned(
        &self,
        id: RunId,
        pid: i32,
        sandbox: &Value,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.conn.alter(
            "record the start",
            "UPDATE task_runs SET worker_pid = ?2, sandbox = ?3, spawned_at = coalesce(spawned_at, ?4) \
         WHERE id = ?1 AND ended_at IS NULL",
            params![id, pid, sandbox.to_string(), now],
        )
    }

    /// Stores the token of an open external run, in place of an earlier token. Returns false if there is no such run.
    pub(crate) fn set_token(&self, id: RunId, hash: &[u8; 32]) -> Result<bool, Error> {
        self.conn.alter(
            "store the token",
            "UPDATE task_runs SET token_hash = ?2 WHERE id = ?1 AND ended_at IS NULL AND holder = 'hand'",
            params![id, hash.as_slice()],
        )
    }

    /// Closes an open run. Returns false if the run was not open.
    pub(crate) fn close_run(&self, id: RunId, end: &Close<'_>) -> Result<bool, Error> {
        self.count_closed(id)?;
        let measured = end.measured.cells();
        let columns =
            measured.iter().fold(String::new(), |columns, (column, _)| columns + ", " + column + " = ?");
        let sql = format!(
            "UPDATE task_runs SET status = ?2, outcome = ?3, summary = ?4, error = ?5, metadata = ?6, exit_code = ?7, \
               signal = ?8, usage = ?9, stderr_tail = ?10, finished = ?11, ended_at = ?12, evidence = ?13{columns} \
             WHERE id = ?1 AND ended_at IS NULL"
        );
        let (metadata, usage, evidence) =
            (to_json_or_null(end.metadata), to_json_or_null(end.usage), to_json_or_null(end.evidence));
        let (status, finished) = (RunStatus::from(end.finished.outcome), to_json(end.finished)?);
        let plain: [&dyn ToSql; 13] = [
            &id,
            &status,
            &end.finished.outcome,
            &end.summary,
            &end.error,
            &metadata,
            &end.exit_code,
            &end.signal,
            &usage,
            &end.stderr_tail,
            &finished,
            &end.ended_at,
            &evidence,
        ];
        let values = plain.into_iter().chain(measured.iter().map(|(_, value)| value as &dyn ToSql));
        self.conn.alter("close the run", &sql, params_from_iter(values))
    }

    pub(crate) fn finished_run(&self, id: RunId) -> Result<Option<Finished>, Error> {
        self.conn
            .find("read how the run ended", "SELECT finished FROM task_runs WHERE id = ?1", [id], |row| {
                json(row, "finished")
            })
            .map(Option::flatten)
    }

    /// Merges a run that came to nothing with the run before it, if that came to nothing as well: the earlier row is
    /// removed, and the later counts the tries. Returns the removed run.
    pub(crate) fn gather_tries(&self, task: &TaskId, id: RunId) -> Result<Option<RunId>, Error> {
        let before: Option<(RunId, Option<u32>)> = self.conn.find(
            "read the run before",
            "SELECT id, tries FROM task_runs WHERE task_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT 1",
            params![task, id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let before = before.and_then(|(run, tries)| Some((run, tries?)));
        let tries = before.map_or(0, |(_, tries)| tries).saturating_add(1);
        self.conn.run(
            "count the tries",
            "UPDATE task_runs SET tries = ?2 WHERE id = ?1",
            params![id, tries],
        )?;
        let Some((before, _)) = before else { return Ok(None) };
        self.conn.run("forget the run before", "DELETE FROM task_runs WHERE id = ?1", [before])?;
        Ok(Some(before))
    }

    /// Replaces the handoff of a completed run.
    pub(crate) fn edit_handoff(
        &self,
        id: RunId,
        summary: Option<&str>,
        metadata: Option<&Value>,
    ) -> Result<(), Error> {
        self.conn.run("edit the handoff", "UPDATE task_runs SET summary = coalesce(?2, summary), metadata = coalesce(?3, metadata) WHERE id = ?1", params![id, summary, to_json_or_null(metadata)])
    }
}

fn within(
    conn: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
    mut capacity: ReplyCapacity,
    limit: u32,
) -> Result<Excerpt<Run>, Error> {
    let run_rows: Vec<Run> = conn.list(
        "list the runs",
        &format!("SELECT {COLUMNS} FROM task_runs WHERE task_id = ?1 {rest}"),
        params,
        |row| {
            let run = read(row)?;
            let size = size_of_texts(&run);
            Ok(if capacity.take(size) { run } else { bare(run, size) })
        },
    )?;
    Ok(Excerpt::from_rows(run_rows, limit as usize))
}

fn size_of_texts(run: &Run) -> usize {
    let texts = [&run.summary, &run.error, &run.stderr_tail].into_iter().flatten().map(String::len);
    let facts = [&run.metadata, &run.sandbox, &run.usage].into_iter().flatten();
    let verdict = run.verdict.as_ref().and_then(|verdict| serde_json::to_string(verdict).ok());
    texts.chain(facts.map(|fact| fact.to_string().len())).chain(verdict.map(|text| text.len())).sum()
}

fn bare(run: Run, size: usize) -> Run {
    Run {
        summary: Some(limits::left_out(size)),
        error: None,
        stderr_tail: None,
        metadata: None,
        sandbox: None,
        usage: None,
        verdict: None,
        ..run
    }
}
