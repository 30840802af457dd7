//! The leases of external claims: when they are over, and their renewal.

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

/// The open external claims.
const CLAIMS: &str = "FROM task_runs INDEXED BY task_runs_lease WHERE ended_at IS NULL AND holder = 'hand'";

/// A query of those of another boot than the first parameter names: ranges of the index.
fn claims_of_other_boots() -> String {
    ["boot_id IS NULL", "boot_id < ?1", "boot_id > ?1"]
        .map(|other| format!("SELECT id {CLAIMS} AND {other}"))
        .join(" UNION ALL ")
}

impl Tx<'_> {
    /// Lists the external claims that have expired, on the clock of this boot or because of another one.
    pub(crate) fn expired_claims(&self, boottime_us: i64, boot_id: &str) -> Result<Vec<Run>, Error> {
        let others = claims_of_other_boots();
        let rest = format!(
            "WHERE id IN ({others} UNION ALL SELECT id {CLAIMS} AND boot_id = ?1 AND claim_expires_boottime_us <= ?2) ORDER BY id"
        );
        runs::query(self.conn, &rest, params![boot_id, boottime_us])
    }

    /// Returns when the next external claim expires, in microseconds since boot, by the rule of [`Self::expired_claims`]: one of another boot
    /// has expired. However many claims there are, it reads the first of them alone.
    pub(crate) fn next_claim_expiry(&self, boot_id: &str) -> Result<Option<i64>, Error> {
        let others = claims_of_other_boots();
        let sql = format!(
            "SELECT CASE WHEN EXISTS ({others}) THEN 0 \
               ELSE (SELECT min(claim_expires_boottime_us) {CLAIMS} AND boot_id = ?1) END"
        );
        self.conn.value("read the next expiry", &sql, [boot_id])
    }

    /// Renews an open run's lease and notes a sign of life. Returns whether it was open.
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
