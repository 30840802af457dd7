//! Waiting for what may never be due.

use std::time::Duration;

/// Sleeps for a time, or without end where none is given.
pub(crate) async fn sleep_if_due(rest: Option<Duration>) {
    match rest {
        // The least is what the clock of the runtime can tell apart.
        Some(rest) => tokio::time::sleep(rest.max(Duration::from_millis(1))).await,
        None => std::future::pending().await,
    }
}
