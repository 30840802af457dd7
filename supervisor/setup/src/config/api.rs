//! `[api]`: limits on concurrent connections, requests and bytes of callers.

use serde::Deserialize;

/// Limits of the API, above the needs of any well-behaved worker. Reloaded on SIGHUP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApiConfig {
    /// Connections of all workers; capped at a quarter of the daemon's descriptor limit.
    pub connections: usize,
    /// Connections of one uid, or of one process if workers share the daemon's uid.
    pub connections_per_worker: usize,
    /// Connections of operators; capped at an eighth of the daemon's descriptor limit.
    pub operator_connections: usize,
    /// Requests of one run that are in progress or have an unread reply.
    pub requests_per_run: usize,
    /// Requests of all runs of one tenant that are in progress or have an unread reply.
    pub requests_per_tenant: usize,
    /// New connections per second of one uid or process; the burst is two seconds' worth.
    pub connections_per_second_per_worker: u32,
    /// Requests per second of one run; the burst is ten seconds' worth.
    pub requests_per_second_per_run: u32,
    /// Requests per second of all runs of one tenant; the burst is ten seconds' worth.
    pub requests_per_second_per_tenant: u32,
    /// Uploads in progress of one run.
    pub uploads_per_run: usize,
    /// Uploads in progress of all runs of one tenant.
    pub uploads_per_tenant: usize,
    /// Uploads in progress of all runs. A tenant without an upload may begin one beyond this limit.
    pub uploads: usize,
    /// Bytes of request bodies in transfer and unread replies, of one run.
    pub unread_bytes_per_run: usize,
    /// Bytes of request bodies in transfer and unread replies, of all runs of one tenant.
    pub unread_bytes_per_tenant: usize,
    /// Bytes of request bodies in transfer and unread replies, of all runs. A request of a tenant without such bytes is
    /// admitted beyond this limit.
    pub unread_bytes: usize,
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
    /// Returns the key of the first limit that is 0, with which every caller would be refused.
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
