//! Minimum transfer rate of a peer.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Longest time without any transfer.
const STALL: Duration = Duration::from_secs(10);
/// Least number of bytes per second of waiting, once `STALL` is used up.
const FLOOR: u64 = 64 << 10;

/// Time spent waiting for a peer, and bytes transferred. Time that this side needs does not count.
#[derive(Debug, Default)]
pub(super) struct TransferRate {
    moved: u64,
    waited: Duration,
    since: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl TransferRate {
    /// Counts transferred bytes; the wait is over.
    pub(super) fn moved(&mut self, bytes: usize) {
        self.moved = self.moved.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if let Some(since) = self.since.take() {
            self.waited += since.elapsed();
        }
    }

    /// Starts again for the next request or reply.
    pub(super) fn restart(&mut self) {
        *self = TransferRate { alarm: self.alarm.take(), ..TransferRate::default() };
    }

    /// Polled while the peer transfers nothing; ready once the peer has used up its time.
    pub(super) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline();
        match &mut self.alarm {
            Some(alarm) => {
                if alarm.deadline() != deadline {
                    alarm.as_mut().reset(deadline);
                }
                alarm.as_mut().poll(cx)
            }
            None => self.alarm.insert(Box::pin(sleep_until(deadline))).as_mut().poll(cx),
        }
    }

    fn deadline(&mut self) -> Instant {
        let since = *self.since.get_or_insert_with(Instant::now);
        // Each second's worth of transferred bytes allows one more second of waiting. A single silence never exceeds
        // STALL.
        let allowed = STALL + Duration::from_secs(self.moved / FLOOR);
        since + allowed.saturating_sub(self.waited).min(STALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn given_up(rate: &mut TransferRate) -> Duration {
        let start = Instant::now();
        std::future::poll_fn(|cx| rate.poll_too_slow(cx)).await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_moves_nothing_is_given_up_after_the_stall() {
        let waited = given_up(&mut TransferRate::default()).await;
        assert!(waited >= STALL && waited < STALL * 2, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_is_not_enough_and_a_fair_pace_is() {
        let trickle = async |bytes: usize| {
            let mut rate = TransferRate::default();
            let start = Instant::now();
            while start.elapsed() < STALL * 20 {
                let late = tokio::time::timeout(STALL / 2, given_up(&mut rate)).await;
                if late.is_ok() {
                    break;
                }
                rate.moved(bytes);
            }
            start.elapsed()
        };
        assert!(trickle(1).await < STALL * 2);
        let fair = usize::try_from(FLOOR).unwrap() * 10;
        assert!(trickle(fair).await >= STALL * 20);
    }
}
