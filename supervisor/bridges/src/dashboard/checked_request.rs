//! A request that passed the origin checks, with its sessions.

use std::sync::Arc;

use axum::http::HeaderMap;

use super::guard;
use base::failure::Failure;
use setup::browsers::{Browsers, Session};

/// A request from the dashboard's own page, or without an origin.
#[derive(Debug)]
pub(super) struct CheckedRequest<'a> {
    pub(super) browsers: &'a Browsers,
    /// Unix user of the browser.
    pub(super) browser: u32,
    pub(super) origin: String,
    /// Sessions of the request's cookies.
    pub(super) sessions: Vec<Arc<Session>>,
}

impl CheckedRequest<'_> {
    /// Returns the session of a request that has its key, too. A server on another port of this host receives the
    /// cookie, and never the key.
    pub(super) fn known(&self, headers: &HeaderMap) -> Result<Arc<Session>, Failure> {
        let key = guard::key(headers).ok_or_else(guard::no_session)?;
        let session = self.sessions.iter().find(|session| Browsers::used(session, key));
        session.map(Arc::clone).ok_or_else(guard::no_session)
    }
}
