//! A browser session: its owner, the digests of its cookie and key, and its end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kernel::{Tenant, Timestamp};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// Lifetime of a session without a request.
pub(crate) const IDLE: Duration = Duration::from_hours(12);
/// Longest lifetime of a session.
pub(crate) const AGE: Duration = Duration::from_hours(7 * 24);

/// Setting back of the clock that a session survives.
const SKEW: Duration = Duration::from_mins(5);

/// Id of a session; no secret.
pub type SessionId = String;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Person who asked for the link.
    pub name: String,
    pub uid: Option<u32>,
    /// Only tenant that the session may see.
    pub tenant: Option<Tenant>,
    /// True if the person is a member of the tenant, who may leave it.
    #[serde(default)]
    pub is_member: bool,
}

/// Digests of a session's secrets.
pub(super) struct Digests {
    pub(super) cookie: [u8; 32],
    pub(super) key: [u8; 32],
}

/// A session as it is stored.
pub(super) struct Stored {
    pub(super) id: SessionId,
    pub(super) owner: Owner,
    pub(super) browser: u32,
    pub(super) digests: Digests,
    pub(super) began: Timestamp,
    pub(super) used: Timestamp,
}

#[derive(Debug)]
pub struct Session {
    pub id: SessionId,
    pub owner: Owner,
    /// Unix user of the browser's connections.
    pub browser: u32,
    pub(super) cookie: [u8; 32],
    pub(super) key: [u8; 32],
    pub began: Timestamp,
    used: Mutex<Timestamp>,
    ended: CancellationToken,
}

impl Session {
    /// Begins a session.
    pub(super) fn begin(owner: Owner, browser: u32, digests: Digests, now: Timestamp) -> Self {
        let id = hex::encode(&super::digest(&super::secret())[..4]);
        Session::kept(Stored { id, owner, browser, digests, began: now, used: now })
    }

    /// Restores a session that an earlier daemon stored.
    pub(super) fn kept(stored: Stored) -> Self {
        let Stored { id, owner, browser, digests: Digests { cookie, key }, began, used } = stored;
        let ended = CancellationToken::new();
        Session { id, owner, browser, cookie, key, began, used: Mutex::new(used), ended }
    }

    /// Returns the time of the last use.
    pub fn used(&self) -> Timestamp {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn touch(&self, now: Timestamp) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Returns the time until it expires without further use.
    pub(super) fn left(&self, now: Timestamp) -> Duration {
        // The age of a session that begins in the future is unknown, because the clock was set back.
        if self.began > now.after(SKEW) {
            return Duration::ZERO;
        }
        let idle = IDLE.saturating_sub(now.since(self.used()));
        idle.min(AGE.saturating_sub(now.since(self.began)))
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.ended.is_cancelled() || self.left(now).is_zero()
    }

    /// Ends it, with its streams.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    /// Returns a token that is cancelled at the end of the session.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_begins_in_the_future_is_over() {
        let at = Timestamp::from_secs;
        let owner = Owner { name: "ada".to_owned(), uid: Some(7), tenant: None, is_member: false };
        let session = Session::kept(Stored {
            id: "1".to_owned(),
            owner,
            browser: 7,
            digests: Digests { cookie: [1; 32], key: [2; 32] },
            began: at(1_000_000),
            used: at(1_000_000),
        });
        assert!(!session.is_over(at(999_990)), "a clock that is set back by seconds ends no session");
        assert!(session.is_over(at(10)));
    }
}
