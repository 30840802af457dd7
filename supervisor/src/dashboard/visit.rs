//! A request of which it is known that no page of another origin has made it, and the session that it shows.

use std::sync::Arc;

use axum::http::HeaderMap;

use super::guard;
use crate::browsers::{Browsers, Session};
use crate::failure::Failure;

/// A request that comes from the dashboard's own page, or from nowhere.
#[derive(Debug)]
pub(super) struct Visit<'a> {
    pub(super) browsers: &'a Browsers,
    /// The Unix user of the browser.
    pub(super) browser: Option<u32>,
    /// The origin of the page.
    pub(super) origin: String,
    /// The sessions whose cookies it shows.
    pub(super) sessions: Vec<Arc<Session>>,
}

impl Visit<'_> {
    /// The session of a request that shows its key too. A server on another port of this host gets the cookie, and never the key.
    pub(super) fn known(&self, headers: &HeaderMap) -> Result<Arc<Session>, Failure> {
        let key = guard::key(headers).ok_or_else(guard::no_session)?;
        let own = self.sessions.iter().find(|session| Browsers::used(session, key));
        own.map(Arc::clone).ok_or_else(guard::no_session)
    }
}
