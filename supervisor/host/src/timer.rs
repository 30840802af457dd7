//! A timer on the real-time clock: it expires at a moment, or at once if the clock is set.

use std::os::fd::{AsFd as _, OwnedFd};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use super::readiness::readable;
use kernel::Timestamp;

/// Timer on the real-time clock. Only this timer wakes an idle daemon.
#[derive(Debug)]
pub struct WallTimer {
    timer: TimerFd,
    ready: AsyncFd<OwnedFd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The moment has come.
    Due,
    ClockSet,
}

/// State of the clock when the timer was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    /// The clock was not set since the last expiry.
    Calm,
    /// The clock was set since the last expiry, and that expiry is not reported again.
    AfterSet,
}

impl WallTimer {
    /// Makes a timer that is not armed.
    pub fn new() -> std::io::Result<Self> {
        let timer =
            TimerFd::new(ClockId::CLOCK_REALTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        let ready = readable(timer.as_fd().try_clone_to_owned()?)?;
        Ok(WallTimer { timer, ready })
    }

    /// Arms it for a moment, or disarms it.
    pub fn set(&self, at: Option<Timestamp>) -> std::io::Result<Armed> {
        let Some(at) = at else {
            self.timer.unset()?;
            return Ok(Armed::Calm);
        };
        let micros = at.as_micros().max(1);
        let moment = TimeSpec::new(micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) * 1000);
        // With CANCEL_ON_SET a change of the clock makes the timer readable too (timerfd_create(2)).
        let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
        match self.timer.set(Expiration::OneShot(moment), flags) {
            // The clock was set since the last read. The timer is armed all the same (timerfd_setup in fs/timerfd.c),
            // for the moment by the new clock.
            Err(nix::errno::Errno::ECANCELED) => Ok(Armed::AfterSet),
            Ok(()) => Ok(Armed::Calm),
            Err(e) => Err(e.into()),
        }
    }

    /// Waits for the expiry. Cancel-safe: an expiry that was not taken stays readable.
    pub async fn expired(&self) -> std::io::Result<Expiry> {
        let mut ready = self.ready.readable().await?;
        // Not `TimerFd::wait`, which cannot tell a set clock from an expiry. A spurious wake-up is harmless.
        let read = rustix::io::read(&self.timer, &mut [0_u8; 8]);
        ready.clear_ready();
        Ok(if read == Err(rustix::io::Errno::CANCELED) { Expiry::ClockSet } else { Expiry::Due })
    }
}
