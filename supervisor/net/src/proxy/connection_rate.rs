//! Limits the connections of a run that are accepted per second.

use std::time::Duration;

use tokio::time::Instant;

/// Connections per second.
const A_SECOND: u32 = 100;

/// Pace of one run.
#[derive(Debug)]
pub(super) struct ConnectionRate {
    second: Instant,
    accepted: u32,
}

impl ConnectionRate {
    pub(super) fn start() -> Self {
        ConnectionRate { second: Instant::now(), accepted: 0 }
    }

    /// Counts a connection, and waits for the next second if the limit is reached.
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
