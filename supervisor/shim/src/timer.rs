//! Timer of the shim on `CLOCK_BOOTTIME`, which goes on during a suspend and which no change of the clock affects.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// Timer whose descriptor becomes readable at the set time (`timerfd_create(2)`).
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    set_to: Option<u64>,
}

impl Alarm {
    /// Creates a timer that is not set.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { timer: timerfd_create(TimerfdClockId::Boottime, flags)?, set_to: None })
    }

    /// Sets the timer to a time in microseconds since boot; none disarms it.
    pub(crate) fn set(&mut self, at_us: Option<u64>) -> io::Result<()> {
        if self.set_to == at_us {
            return Ok(());
        }
        // A time of zero would disarm the timer. 1 ns after boot is also in the past, so the timer expires at once.
        let value = at_us.map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, |at| Timespec {
            tv_sec: i64::try_from(at / 1_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at % 1_000_000 * 1_000).unwrap_or(0).max(1),
        });
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.set_to = at_us;
        Ok(())
    }

    /// Clears the readiness of the descriptor if the timer has expired, so that the timer can be set again.
    pub(crate) fn clear(&mut self) {
        let mut count = [0; 8];
        if rustix::io::read(&self.timer, &mut count).is_ok() {
            self.set_to = None;
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
