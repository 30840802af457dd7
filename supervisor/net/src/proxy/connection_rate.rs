//! Limits the rate at which the proxy accepts connections of a run.

use std::time::Duration;

use tokio::time::Instant;

/// Largest number of accepted connections per second and run.
const A_SECOND: u32 = 100;

/// Number of connections that a run has made in the current second. `second` is the start of that second.
#[derive(Debug)]
pub(super) struct ConnectionRate {
    second: Instant,
    accepted: u32,
}

impl ConnectionRate {
    pub(super) fn start() -> Self {
        ConnectionRate { second: Instant::now(), accepted: 0 }
    }

    /// Counts a connection. If the limit is reached, waits for the end of the current second first.
    pub(super) async fn next(&mut self) {
        let end = self.second + Duration::from_secs(1);
        if Instant::now() < end && self.accepted >= A_SECOND {
            tokio::time::sleep_until(end).await;
        }
        if Instant::now() >= end {
            *self = ConnectionRate::start();
        }
        self.accepted += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_run_has_a_number_of_connections_in_each_second() {
        let start = Instant::now();
        let mut pace = ConnectionRate::start();
        for _ in 0..A_SECOND {
            pace.next().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        pace.next().await;
        assert_eq!(start.elapsed().as_secs(), 1, "one more waits for the next second");
        for _ in 1..A_SECOND {
            pace.next().await;
        }
        assert_eq!(start.elapsed().as_secs(), 1);
        pace.next().await;
        assert_eq!(start.elapsed().as_secs(), 2);
        tokio::time::advance(Duration::from_mins(1)).await;
        pace.next().await;
        assert_eq!(start.elapsed().as_secs(), 62);
    }
}
