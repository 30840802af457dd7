//! Leases of external claims: their expiry and renewal.

use std::time::Duration;

use rusqlite::params;

use super::convert::micros;
use super::runs;
use super::statement::Statement as _;
use super::tx::Tx;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::RunId;
use crate::model::run::Run;

/// Condition for open external claims.
const CLAIMS: &str = "FROM task_runs INDEXED BY task_runs_lease WHERE ended_at IS NULL AND holder = 'hand'";

/// Returns a query for claims of other boots than the first parameter, as ranges of the index.
fn claims_of_other_boots() -> String {
    ["boot_id IS NULL", "boot_id < ?1", "boot_id > ?1"]
        .map(|other| format!("SELECT id {CLAIMS} AND {other}"))
        .join(" UNION ALL ")
}

impl Tx<'_> {
    /// Returns the external claims that have expired: on the clock of this boot, or because they belong to another boot.
    pub(crate) fn expired_claims(&self, boottime_us: i64, boot_id: &str) -> Result<Vec<Run>, Error> {
        let others = claims_of_other_boots();
        let rest = format!(
            "WHERE id IN ({others} UNION ALL SELECT id {CLAIMS} AND boot_id = ?1 AND claim_expires_boottime_us <= ?2) ORDER BY id"
        );
        runs::query(self.conn, &rest, params![boot_id, boottime_us])
    }

    /// Returns the expiry of the next external claim, in microseconds since boot, by the rule of
    /// [`Self::expired_claims`]; zero for a claim of another boot. Reads a single entry of the index.
    pub(crate) fn next_claim_expiry(&self, boot_id: &str) -> Result<Option<i64>, Error> {
        let others = claims_of_other_boots();
        let sql = format!(
            "SELECT CASE WHEN EXISTS ({others}) THEN 0 \
               ELSE (SELECT min(claim_expires_boottime_us) {CLAIMS} AND boot_id = ?1) END"
        );
        self.conn.value("read the next expiry", &sql, [boot_id])
    }

    /// Renews the lease of an open run and stores the heartbeat. Returns false if the run was not open.
    pub(crate) fn record_heartbeat(
        &self,
        id: RunId,
        now: Timestamp,
        boottime: Duration,
    ) -> Result<bool, Error> {
        self.conn.alter(
            "record the heartbeat",
            "UPDATE task_runs SET last_heartbeat_at = ?2, claim_expires = ?2 + claim_ttl_us, \
           claim_expires_boottime_us = ?3 + claim_ttl_us WHERE id = ?1 AND ended_at IS NULL",
            params![id, now, micros(boottime)],
        )
    }
}
