//! An alarm on `CLOCK_BOOTTIME`: it counts suspended time and no clock change moves it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A timer that becomes readable at its time.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    set_to: Option<u64>,
}

impl Alarm {
    /// Makes a timer that is not set.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { timer: timerfd_create(TimerfdClockId::Boottime, flags)?, set_to: None })
    }

    /// Sets the timer to a time, in microseconds, or to none.
    pub(crate) fn set(&mut self, at_us: Option<u64>) -> io::Result<()> {
        if self.set_to == at_us {
            return Ok(());
        }
        // All zeros would disarm the timer; 1 ns after boot is as past as 0.
        let value = at_us.map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, |at| Timespec {
            tv_sec: i64::try_from(at / 1_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at % 1_000_000 * 1_000).unwrap_or(0).max(1),
        });
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.set_to = at_us;
        Ok(())
    }

    /// Takes note that it rang.
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
