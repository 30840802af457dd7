//! One timer on the real-time clock: it goes off at a moment, or at once when somebody sets the clock.

use std::os::fd::{AsFd as _, OwnedFd};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use super::readiness::readable;
use kernel::Timestamp;

/// The timer. Without it nothing wakes an idle daemon.
#[derive(Debug)]
pub(crate) struct WallTimer {
    timer: TimerFd,
    ready: AsyncFd<OwnedFd>,
}

/// Why the timer went off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// Its moment has come.
    Due,
    /// Somebody has set the clock.
    ClockSet,
}

impl WallTimer {
    /// A timer that is not armed.
    pub(crate) fn new() -> std::io::Result<Self> {
        let timer =
            TimerFd::new(ClockId::CLOCK_REALTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        let ready = readable(timer.as_fd().try_clone_to_owned()?)?;
        Ok(WallTimer { timer, ready })
    }

    /// Arms it for a moment, or for none.
    pub(crate) fn set(&self, at: Option<Timestamp>) -> std::io::Result<()> {
        let Some(at) = at else { return Ok(self.timer.unset()?) };
        let micros = at.as_micros().max(1);
        let moment = TimeSpec::new(micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) * 1000);
        // With CANCEL_ON_SET a changed clock makes the timer readable too (timerfd_create(2)).
        let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
        match self.timer.set(Expiration::OneShot(moment), flags) {
            // Somebody has set the clock since the last look. The timer is armed all the same (timerfd_setup in
            // fs/timerfd.c), and its moment is one of the clock as it is now.
            Ok(()) | Err(nix::errno::Errno::ECANCELED) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Waits until it goes off. Cancel-safe: an expiry that nobody took stays readable.
    pub(crate) async fn expired(&self) -> std::io::Result<Expiry> {
        let mut ready = self.ready.readable().await?;
        // Not `TimerFd::wait`, which takes a clock that was set for an expiry. A spurious wake-up does no harm.
        let read = rustix::io::read(&self.timer, &mut [0_u8; 8]);
        ready.clear_ready();
        Ok(if read == Err(rustix::io::Errno::CANCELED) { Expiry::ClockSet } else { Expiry::Due })
    }
}
