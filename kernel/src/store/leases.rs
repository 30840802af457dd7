//! Queries for the leases of claims by hand: their expiry and renewal.

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

/// Source and condition of a query for open claims by hand.
const CLAIMS: &str = "FROM task_runs INDEXED BY task_runs_lease WHERE ended_at IS NULL AND holder = 'hand'";

/// Returns a query for the claims of other boots; the first parameter is the id of this boot. Three ranges of the index
/// are read, because an index does not serve `<>`.
fn claims_of_other_boots() -> String {
    ["boot_id IS NULL", "boot_id < ?1", "boot_id > ?1"]
        .map(|other| format!("SELECT id {CLAIMS} AND {other}"))
        .join(" UNION ALL ")
}

impl Tx<'_> {
    /// Returns the claims by hand that have expired, by id: those whose lease has ended on the clock of this boot, and
    /// all claims of other boots.
    pub(crate) fn expired_claims(&self, boottime_us: i64, boot_id: &str) -> Result<Vec<Run>, Error> {
        let others = claims_of_other_boots();
        let rest = format!(
            "WHERE id IN ({others} UNION ALL SELECT id {CLAIMS} AND boot_id = ?1 AND claim_expires_boottime_us <= ?2) ORDER BY id"
        );
        runs::query(self.conn, &rest, params![boot_id, boottime_us])
    }

    /// Returns the time at which the next claim by hand expires, in microseconds since boot, by the rule of
    /// [`Self::expired_claims`]: zero if there is a claim of another boot, none if there is no claim. Reads the first
    /// entry of each range of the index.
    pub(crate) fn next_claim_expiry(&self, boot_id: &str) -> Result<Option<i64>, Error> {
        let others = claims_of_other_boots();
        let sql = format!(
            "SELECT CASE WHEN EXISTS ({others}) THEN 0 \
               ELSE (SELECT min(claim_expires_boottime_us) {CLAIMS} AND boot_id = ?1) END"
        );
        self.conn.value("read the next expiry", &sql, [boot_id])
    }

    /// Stores the heartbeat of an open run and renews its lease on both clocks. A run without a lease (its `claim_ttl_us`
    /// is NULL) gets none. Returns false if the run is not open.
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
