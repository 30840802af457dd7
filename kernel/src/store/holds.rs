//! Queries of holds. An ended hold stays in the table, with its end.

use rusqlite::{Row, params};

use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::hold::{Hold, HoldOn, NewHold, Within};
use crate::model::id::{RunId, Tenant};
use crate::model::run::Run;

fn read(row: &Row<'_>) -> rusqlite::Result<Hold> {
    Ok(Hold {
        id: row.get("id")?,
        kind: row.get("kind")?,
        scope: row.get("scope")?,
        name: row.get("name")?,
        reason: row.get("reason")?,
        placed_by: row.get("placed_by")?,
        within: within(&row.get::<_, String>("within")?)?,
        run_id: row.get("run_id")?,
        met_by_task: row.get("met_by_task")?,
        met_by_tenant: row.get::<_, Option<String>>("met_by_tenant")?.and_then(|name| name.parse().ok()),
        probe_run: row.get("probe_run")?,
        until: row.get("until")?,
        created_at: row.get("created_at")?,
    })
}

const COLUMNS: &str = "id, kind, scope, name, reason, placed_by, within, run_id, met_by_task, met_by_tenant, probe_run, \
                       until, created_at";

/// Column value that means every tenant and is no valid name of a tenant.
const BOARD: &str = "*";

fn within(text: &str) -> rusqlite::Result<Within> {
    Ok(match text {
        BOARD => Within::Board,
        "" => Within::Tenant(None),
        name => Within::Tenant(Some(name.parse().map_err(|e| {
            rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(e))
        })?)),
    })
}

/// Caller who places a hold.
#[derive(Clone, Copy)]
pub(crate) struct By<'a> {
    pub(crate) label: &'a str,
    pub(crate) within: &'a Within,
    pub(crate) run: Option<&'a Run>,
}

impl Tx<'_> {
    /// Returns the holds that have not ended, oldest first.
    pub(crate) fn live_holds(&self) -> Result<Vec<Hold>, Error> {
        let sql =
            format!("SELECT {COLUMNS} FROM holds INDEXED BY holds_live WHERE ended_at IS NULL ORDER BY id");
        self.conn.list("list holds", &sql, [], read)
    }

    pub(super) fn unread_holds(&self) -> Result<Vec<String>, Error> {
        unread(self.conn, "holds", &format!("SELECT {COLUMNS} FROM holds"), read)
    }

    /// Places a hold, or renews the hold of the same kind on the same target.
    pub(crate) fn insert_hold(
        &self,
        on: &HoldOn,
        hold: &NewHold,
        by: By<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let within = match by.within {
            Within::Board => BOARD,
            Within::Tenant(tenant) => tenant.as_ref().map_or("", Tenant::as_str),
        };
        let task = by.run.map(|run| &run.task_id);
        let tenant = by.run.and_then(|run| run.tenant.as_ref()).map(Tenant::as_str);
        let (label, run) = (by.label, by.run.map(|run| run.id));
        self.conn.run(
            "place the hold",
            "INSERT INTO holds (kind, scope, name, reason, placed_by, run_id, until, created_at, within, met_by_task, \
               met_by_tenant) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
             ON CONFLICT (scope, name, kind, within) WHERE ended_at IS NULL DO UPDATE SET reason = excluded.reason, \
               placed_by = excluded.placed_by, run_id = excluded.run_id, probe_run = NULL, until = excluded.until, \
               met_by_task = excluded.met_by_task, met_by_tenant = excluded.met_by_tenant",
            params![
                hold.kind, on.scope, on.name, hold.reason, label, run, hold.until, now, within, task, tenant
            ],
        )
    }

    /// Stores the run that probes a hold; none when no run does.
    pub(crate) fn set_probe(&self, id: i64, run: Option<RunId>, until: Timestamp) -> Result<(), Error> {
        self.conn.run(
            "note the probe",
            "UPDATE holds SET probe_run = ?2, until = ?3 WHERE id = ?1 AND ended_at IS NULL",
            params![id, run, until],
        )
    }

    pub(crate) fn end_hold(&self, id: i64, by: &str, now: Timestamp) -> Result<(), Error> {
        self.conn.run(
            "end the hold",
            "UPDATE holds SET ended_at = ?2, ended_by = ?3 WHERE id = ?1 AND ended_at IS NULL",
            params![id, now, by],
        )
    }

    /// Returns the time at which the next hold ends or may be probed.
    pub(crate) fn next_hold_end(&self, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        // The hold of a due limit without a probe waits for a start, not for a time.
        self.conn.value(
            "read the next end of a hold",
            "SELECT min(until) FROM holds INDEXED BY holds_live \
         WHERE ended_at IS NULL AND (until > ?1 OR kind IN ('manual', 'budget') OR probe_run IS NOT NULL)",
            [now],
        )
    }
}
