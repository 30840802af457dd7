//! Ledger: use on each day, by mission, tenant, account and profile.
//!
//! Sums over runs would read every run, and lose the use of deleted ones. The report of a run is a total: only its
//! difference to the last report is added, so a repeated report adds nothing. `gc` removes days after 400 days,
//! because a fleet of small tasks would grow the table for ever.

use rusqlite::{Row, params};

use super::convert::{StoredTenant, amount};
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::budget::{Consumed, Spend, SpendBy};
use crate::model::error::Error;
use crate::model::id::Tenant;
use crate::model::run::Run;

fn column(by: SpendBy) -> &'static str {
    match by {
        SpendBy::Mission => "mission",
        SpendBy::Tenant => "tenant",
        SpendBy::Account => "account",
        SpendBy::Profile => "profile",
        SpendBy::Day => "day",
    }
}

impl Tx<'_> {
    /// Adds the use of a run on a day to the ledger.
    pub(crate) fn add_to_ledger(
        &self,
        run: &Run,
        mission: &str,
        day: &str,
        more: Consumed,
    ) -> Result<(), Error> {
        let account = run.account.as_deref().unwrap_or_default();
        let profile = run.profile.as_ref().map_or("", |profile| profile.as_str());
        self.conn.run(
            "add to the ledger",
            "INSERT INTO spend (day, mission, tenant, account, profile, requests, bytes, tokens, cost_micros) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO UPDATE SET \
               requests = min(requests + excluded.requests, ?10), bytes = min(bytes + excluded.bytes, ?10), \
               tokens = min(tokens + excluded.tokens, ?10), cost_micros = min(cost_micros + excluded.cost_micros, ?10)",
            params![
                day,
                mission,
                StoredTenant(run.tenant.as_ref()),
                account,
                profile,
                amount(more.requests),
                amount(more.bytes),
                amount(more.tokens),
                amount(more.cost_micros),
                amount(u64::MAX)
            ],
        )
    }

    /// Returns the number of rows from before a day.
    pub(crate) fn count_ledger_before(&self, day: &str) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM spend WHERE day < ?1";
        self.conn.value("count old days of the ledger", sql, [day]).map(i64::unsigned_abs)
    }

    /// Removes at most `limit` rows from before a day. Returns their number.
    pub(crate) fn forget_ledger_before(&self, day: &str, limit: u32) -> Result<u64, Error> {
        let sql = "DELETE FROM spend WHERE (day, mission, tenant, account, profile) IN \
               (SELECT day, mission, tenant, account, profile FROM spend WHERE day < ?1 LIMIT ?2)";
        self.conn.count("forget old days of the ledger", sql, params![day, limit]).map(|count| count as u64)
    }

    /// Returns sums of the ledger since a day, of one tenant or of all: at most `limit` rows, the most expensive first;
    /// days in order.
    pub(crate) fn ledger(
        &self,
        by: SpendBy,
        since: &str,
        tenant: Option<&Tenant>,
        limit: u32,
    ) -> Result<Vec<Spend>, Error> {
        let column = column(by);
        let order = match by {
            SpendBy::Day => "name",
            SpendBy::Mission | SpendBy::Tenant | SpendBy::Account | SpendBy::Profile => {
                "cost_micros DESC, tokens DESC, bytes DESC, name"
            }
        };
        let sql = format!(
            "SELECT s.{column} AS name, (SELECT title FROM tasks WHERE '{column}' = 'mission' AND id = s.mission) AS title, \
               sum(requests) AS requests, sum(bytes) AS bytes, sum(tokens) AS tokens, sum(cost_micros) AS cost_micros \
             FROM spend s WHERE day >= ?1 AND (?2 IS NULL OR tenant = ?2) GROUP BY s.{column} ORDER BY {order} LIMIT ?3"
        );
        let count =
            |row: &Row<'_>, name: &str| row.get::<_, i64>(name).map(|count| count.max(0).unsigned_abs());
        self.conn.list("read the ledger", &sql, params![since, tenant.map(Tenant::as_str), limit], |row| {
            Ok(Spend {
                name: Some(row.get::<_, String>("name")?).filter(|name| !name.is_empty()),
                title: row.get("title")?,
                consumed: Consumed {
                    requests: count(row, "requests")?,
                    bytes: count(row, "bytes")?,
                    tokens: count(row, "tokens")?,
                    cost_micros: count(row, "cost_micros")?,
                },
            })
        })
    }
}
