//! Traffic of runs through their proxies, and use of tenants, profiles and accounts on each day.

use std::collections::BTreeMap;

use rusqlite::{Row, params};

use super::convert::{amount, to_json};
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::budget::{Consumed, DayUse, Payer};
use crate::model::error::Error;
use crate::model::id::RunId;
use crate::model::outcome::Egress;
use crate::model::spent::MOST;

const COLUMNS: &str = "scope, name, day, requests, bytes, tokens, cost_micros, more";

fn read(row: &Row<'_>) -> rusqlite::Result<DayUse> {
    let count = |column: &str| row.get::<_, i64>(column).map(|count| count.max(0).unsigned_abs());
    Ok(DayUse {
        payer: Payer { scope: row.get("scope")?, name: row.get("name")? },
        day: row.get("day")?,
        consumed: Consumed {
            requests: count("requests")?,
            bytes: count("bytes")?,
            tokens: count("tokens")?,
            cost_micros: count("cost_micros")?,
        },
        more: count("more")?,
    })
}

impl Tx<'_> {
    /// Stores the traffic through the proxy of a run so far.
    pub(crate) fn put_egress(&self, run: RunId, egress: &Egress) -> Result<(), Error> {
        self.conn.run(
            "record what went through the proxy",
            "INSERT INTO run_egress (run_id, egress) VALUES (?1, ?2) \
             ON CONFLICT (run_id) DO UPDATE SET egress = excluded.egress",
            params![run, to_json(egress)?],
        )
    }

    /// Returns the traffic through the proxies of the open runs that have one.
    pub(super) fn egress_of_open_runs(&self) -> Result<BTreeMap<RunId, Egress>, Error> {
        let rows: Vec<(RunId, String)> = self.conn.list(
            "read what went through the proxies",
            "SELECT e.run_id, e.egress FROM task_runs r INDEXED BY task_runs_open_tenant \
             CROSS JOIN run_egress e ON e.run_id = r.id WHERE r.ended_at IS NULL",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        // A later release may have written a form that this release does not know.
        let known = |(run, text): (RunId, String)| Some((run, serde_json::from_slice(text.as_bytes()).ok()?));
        Ok(rows.into_iter().filter_map(known).collect())
    }

    /// Returns the traffic through the proxy of a run; none for a run without a proxy.
    pub(crate) fn egress_of(&self, run: RunId) -> Result<Option<Egress>, Error> {
        let sql = "SELECT egress FROM run_egress WHERE run_id = ?1";
        let text =
            self.conn.find("read what went through the proxy", sql, [run], |row| row.get::<_, String>(0))?;
        // A later release may have written a form that this release does not know.
        Ok(text.and_then(|text| serde_json::from_slice(text.as_bytes()).ok()))
    }

    /// Adds to the use of a payer on a day. Returns the new sum.
    pub(crate) fn add_to_day(&self, payer: &Payer, day: &str, more: Consumed) -> Result<DayUse, Error> {
        let sql = format!(
            "INSERT INTO day_usage (scope, name, day, requests, bytes, tokens, cost_micros) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET \
               requests = min(requests + excluded.requests, {MOST}), bytes = min(bytes + excluded.bytes, {MOST}), \
               tokens = min(tokens + excluded.tokens, {MOST}), \
               cost_micros = min(cost_micros + excluded.cost_micros, {MOST}) RETURNING {COLUMNS}"
        );
        let [requests, bytes, tokens, cost] =
            [more.requests, more.bytes, more.tokens, more.cost_micros].map(amount);
        let row = params![payer.scope, payer.name, day, requests, bytes, tokens, cost];
        self.conn.fetch("count what is used", &sql, row, read)
    }

    /// Returns the use of a payer on a day.
    pub(crate) fn day_of(&self, payer: &Payer, day: &str) -> Result<DayUse, Error> {
        let sql = format!("SELECT {COLUMNS} FROM day_usage WHERE scope = ?1 AND name = ?2 AND day = ?3");
        let stored_day =
            self.conn.find("read what was used", &sql, params![payer.scope, payer.name, day], read)?;
        Ok(stored_day.unwrap_or_else(|| DayUse {
            payer: payer.clone(),
            day: day.to_owned(),
            consumed: Consumed::default(),
            more: 0,
        }))
    }

    /// Returns the use of all payers on a day.
    pub(crate) fn uses_on(&self, day: &str) -> Result<Vec<DayUse>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM day_usage WHERE day = ?1 ORDER BY scope, name");
        self.conn.list("read what was used", &sql, [day], read)
    }

    /// Returns the use of all payers on all days together, at most `limit` rows; `day` is the first day.
    pub(crate) fn uses_of_all_days(&self, limit: u32) -> Result<Vec<DayUse>, Error> {
        self.conn.list(
            "add up what was used",
            "SELECT scope, name, min(day) AS day, sum(requests) AS requests, sum(bytes) AS bytes, sum(tokens) AS tokens, \
               sum(cost_micros) AS cost_micros, 0 AS more FROM day_usage GROUP BY scope, name ORDER BY scope, name LIMIT ?1",
            [limit],
            read,
        )
    }

    /// Stores the number of times that a payer was granted its budget again on a day.
    pub(crate) fn grant_day(&self, payer: &Payer, day: &str, more: u64) -> Result<(), Error> {
        self.conn.run(
            "grant as much again",
            "UPDATE day_usage SET more = ?4 WHERE scope = ?1 AND name = ?2 AND day = ?3",
            params![payer.scope, payer.name, day, i64::try_from(more).unwrap_or(i64::MAX)],
        )
    }
}
