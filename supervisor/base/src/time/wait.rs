//! Sleeping until a time that may never come.

use std::time::Duration;

/// Sleeps for `rest`, or forever if it is none.
pub async fn sleep_if_due(rest: Option<Duration>) {
    match rest {
        // The runtime's timer has a resolution of one millisecond.
        Some(rest) => tokio::time::sleep(rest.max(Duration::from_millis(1))).await,
        None => std::future::pending().await,
    }
}
