//! `[api]`: what callers may have at once.

use serde::Deserialize;

/// Bounds of the API. No honest worker meets them. Reloaded on SIGHUP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ApiConfig {
    /// Connections of workers, at most a quarter of the descriptors that the daemon may have.
    pub(crate) connections: usize,
    /// Connections of one uid; of one process where workers share the daemon's uid.
    pub(crate) connections_per_worker: usize,
    /// Connections of operators, at most an eighth of the descriptors.
    pub(crate) operator_connections: usize,
    /// Requests of one run that are under way or not read.
    pub(crate) requests_per_run: usize,
    /// The same of all runs of one tenant.
    pub(crate) requests_per_tenant: usize,
    /// Connections a second of one uid, or of one process; two seconds' worth may come at once.
    pub(crate) connections_per_second_per_worker: u32,
    /// Requests a second of one run; ten seconds' worth may come at once.
    pub(crate) requests_per_second_per_run: u32,
    /// The same of all runs of one tenant.
    pub(crate) requests_per_second_per_tenant: u32,
    /// Files of one run that are on their way in.
    pub(crate) uploads_per_run: usize,
    /// The same of all runs of one tenant.
    pub(crate) uploads_per_tenant: usize,
    /// The same of all runs. A tenant that has none is let in all the same.
    pub(crate) uploads: usize,
    /// Bytes of bodies of one run that are on their way in, and of replies that it has not read.
    pub(crate) unread_bytes_per_run: usize,
    /// The same of all runs of one tenant.
    pub(crate) unread_bytes_per_tenant: usize,
    /// The same of all runs. A tenant that has none is let in all the same.
    pub(crate) unread_bytes: usize,
}

impl Default for ApiConfig {
    fn default() -> Self {
        ApiConfig {
            connections: 1024,
            connections_per_worker: 64,
            connections_per_second_per_worker: 200,
            operator_connections: 512,
            requests_per_run: 16,
            requests_per_tenant: 64,
            requests_per_second_per_run: 100,
            requests_per_second_per_tenant: 400,
            uploads_per_run: 4,
            uploads_per_tenant: 8,
            uploads: 16,
            unread_bytes_per_run: 16 << 20,
            unread_bytes_per_tenant: 64 << 20,
            unread_bytes: 128 << 20,
        }
    }
}

impl ApiConfig {
    /// The first bound that lets nothing in.
    pub(super) fn shut(&self) -> Option<&'static str> {
        let bounds = [
            ("connections", self.connections),
            ("connections_per_worker", self.connections_per_worker),
            ("connections_per_second_per_worker", self.connections_per_second_per_worker as usize),
            ("operator_connections", self.operator_connections),
            ("requests_per_run", self.requests_per_run),
            ("requests_per_tenant", self.requests_per_tenant),
            ("requests_per_second_per_run", self.requests_per_second_per_run as usize),
            ("requests_per_second_per_tenant", self.requests_per_second_per_tenant as usize),
            ("uploads_per_run", self.uploads_per_run),
            ("uploads_per_tenant", self.uploads_per_tenant),
            ("uploads", self.uploads),
            ("unread_bytes_per_run", self.unread_bytes_per_run),
            ("unread_bytes_per_tenant", self.unread_bytes_per_tenant),
            ("unread_bytes", self.unread_bytes),
        ];
        bounds.into_iter().find(|(_, bound)| *bound == 0).map(|(name, _)| name)
    }
}
