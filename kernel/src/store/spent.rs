//! Queries of the use that agents report.

use std::collections::BTreeMap;

use rusqlite::{Row, params};

use super::convert::amount;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::error::Error;
use crate::model::id::RunId;
use crate::model::run::Run;
use crate::model::spent::{Counters, Spent, Tokens};

fn count(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|count| count.max(0).unsigned_abs())
}

fn optional(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(column).map(|count| count.map(|count| count.max(0).unsigned_abs()))
}

fn read(row: &Row<'_>) -> rusqlite::Result<Spent> {
    Ok(Spent {
        session: row.get("session")?,
        model: row.get("model")?,
        input_tokens: count(row, "input_tokens")?,
        cached_tokens: count(row, "cached_tokens")?,
        output_tokens: count(row, "output_tokens")?,
        cost_micros: optional(row, "cost_micros")?,
        turns: optional(row, "turns")?,
        denials: count(row, "denials")?,
        counters: Counters::OfRun,
    })
}

impl Tx<'_> {
    /// Returns the tokens that a run itself has used. If its agent counts by session, this is the growth since the
    /// earlier run.
    pub(crate) fn used_by(&self, run: &Run, spent: &Spent) -> Result<Tokens, Error> {
        let told = spent.tokens();
        let before = match (spent.counters, &spent.session) {
            (Counters::OfSession, Some(name)) => self.session_counters(run, name)?,
            (Counters::OfSession, None) | (Counters::OfRun, _) => None,
        };
        Ok(before.map_or(told, |before| told.since(before)))
    }

    /// Stores the use of a run, in place of earlier values. `used` are the run's own tokens.
    pub(crate) fn put_spent(&self, run: &Run, spent: &Spent, used: Tokens) -> Result<(), Error> {
        let session = match spent.counters {
            Counters::OfRun => None,
            Counters::OfSession => Some(spent.tokens()),
        };
        let row = params![
            run.id,
            run.task_id,
            spent.session,
            spent.model,
            amount(used.input),
            amount(used.cached),
            amount(used.output),
            spent.cost_micros.map(amount),
            spent.turns.map(amount),
            amount(spent.denials),
            session.map(|tokens| amount(tokens.input)),
            session.map(|tokens| amount(tokens.cached)),
            session.map(|tokens| amount(tokens.output)),
        ];
        self.conn.run(
            "record what the run used",
            "INSERT OR REPLACE INTO run_usage (run_id, task_id, session, model, input_tokens, cached_tokens, output_tokens, \
               cost_micros, turns, denials, session_input, session_cached, session_output) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            row,
        )
    }

    /// Returns the counters of a session at the end of the task's previous run in it.
    fn session_counters(&self, run: &Run, session: &str) -> Result<Option<Tokens>, Error> {
        let read = |row: &Row<'_>| {
            let (input, cached) = (count(row, "session_input")?, count(row, "session_cached")?);
            Ok(Tokens { input, cached, output: count(row, "session_output")? })
        };
        self.conn.find(
            "read the counters of the session",
            "SELECT session_input, session_cached, session_output FROM run_usage \
             WHERE task_id = ?1 AND run_id < ?2 AND session = ?3 AND session_input IS NOT NULL \
             ORDER BY run_id DESC LIMIT 1",
            params![run.task_id, run.id, session],
            read,
        )
    }

    /// Returns the last executed run of the same task with the same profile and purpose, with its session; none if its
    /// agent named no session.
    pub(crate) fn session_before(&self, run: &Run) -> Result<Option<(RunId, String)>, Error> {
        let found = self.conn.find(
            "read the session of the run before",
            "SELECT r.id, u.session FROM task_runs r LEFT JOIN run_usage u ON u.run_id = r.id \
             WHERE r.task_id = ?1 AND r.id < ?2 AND r.profile IS ?3 AND r.purpose = ?4 \
               AND r.spawned_at IS NOT NULL AND r.ended_at IS NOT NULL \
             ORDER BY r.id DESC LIMIT 1",
            params![run.task_id, run.id, run.profile, run.purpose],
            |row: &Row<'_>| Ok((row.get::<_, RunId>("id")?, row.get::<_, Option<String>>("session")?)),
        )?;
        Ok(found.and_then(|(run, session)| Some((run, session?))))
    }

    /// Returns the use of the open runs whose agents have reported any.
    pub(super) fn spent_of_open_runs(&self) -> Result<BTreeMap<RunId, Spent>, Error> {
        self.conn.list(
            "read what the open runs used",
            "SELECT u.run_id, u.session, u.model, u.input_tokens, u.cached_tokens, u.output_tokens, u.cost_micros, u.turns, \
               u.denials FROM task_runs r INDEXED BY task_runs_open_tenant CROSS JOIN run_usage u ON u.run_id = r.id \
             WHERE r.ended_at IS NULL",
            [],
            |row| Ok((row.get("run_id")?, read(row)?)),
        )
    }

    /// Returns the use of a run, if its agent has reported any.
    pub(crate) fn spent_of(&self, run: RunId) -> Result<Option<Spent>, Error> {
        self.conn.find(
            "read what the run used",
            "SELECT session, model, input_tokens, cached_tokens, output_tokens, cost_micros, turns, denials \
             FROM run_usage WHERE run_id = ?1",
            [run],
            read,
        )
    }
}
