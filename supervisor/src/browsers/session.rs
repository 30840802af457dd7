//! One session: whose it is, the digests of its cookie and its key, and when it is over.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kernel::{Tenant, Timestamp};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// How long a session lasts without a request.
pub(crate) const IDLE: Duration = Duration::from_hours(12);
/// How long a session lasts at most.
pub(crate) const AGE: Duration = Duration::from_hours(7 * 24);

/// The name of a session, which is no secret.
pub(crate) type SessionId = String;

/// Whose a session is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// The person who asked for the link.
    pub(crate) name: String,
    pub(crate) uid: Option<u32>,
    /// The only tenant that the session sees.
    pub(crate) tenant: Option<Tenant>,
    /// Whether the person is one of the tenant's users, who may leave it.
    #[serde(default)]
    pub(crate) is_member: bool,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) owner: Owner,
    /// The Unix user from which the browser connects; none where this host does not say it.
    pub(crate) browser: Option<u32>,
    pub(super) cookie: [u8; 32],
    pub(super) key: [u8; 32],
    pub(crate) began: Timestamp,
    used: Mutex<Timestamp>,
    ended: CancellationToken,
}

impl Session {
    /// One that begins now.
    pub(super) fn begin(
        owner: Owner,
        browser: Option<u32>,
        (cookie, key): ([u8; 32], [u8; 32]),
        now: Timestamp,
    ) -> Self {
        let id = hex::encode(&super::digest(&super::secret())[..4]);
        Session::kept((id, owner, browser), (cookie, key), (now, now))
    }

    /// One that an earlier daemon has kept: its secrets, when it began, and when it was used.
    pub(super) fn kept(
        (id, owner, browser): (SessionId, Owner, Option<u32>),
        (cookie, key): ([u8; 32], [u8; 32]),
        (began, used): (Timestamp, Timestamp),
    ) -> Self {
        let ended = CancellationToken::new();
        Session { id, owner, browser, cookie, key, began, used: Mutex::new(used), ended }
    }

    /// When it was last used.
    pub(crate) fn used(&self) -> Timestamp {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn touch(&self, now: Timestamp) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// How long it lasts if it is not used.
    pub(super) fn left(&self, now: Timestamp) -> Duration {
        let idle = IDLE.saturating_sub(now.since(self.used()));
        idle.min(AGE.saturating_sub(now.since(self.began)))
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.ended.is_cancelled() || self.left(now).is_zero()
    }

    /// Ends it, with the streams that it reads.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    /// Is cancelled when it ends.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}
