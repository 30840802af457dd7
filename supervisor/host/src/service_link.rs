//! Notifications to the service manager (`sd_notify(3)`): ready, reloading, stopping, watchdog and status.

use std::time::Duration;

use sd_notify::NotifyState;

/// Connection to the service manager. Without a manager nothing is sent.
#[derive(Debug)]
pub struct ServiceLink {
    listens: bool,
    sent: String,
}

impl ServiceLink {
    /// Connects to the manager that started this process, if it listens.
    pub fn find() -> Self {
        ServiceLink { listens: std::env::var_os("NOTIFY_SOCKET").is_some(), sent: String::new() }
    }

    /// Returns the manager's watchdog interval (`WatchdogSec=`), if set.
    pub fn watchdog() -> Option<Duration> {
        sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero())
    }

    /// Sends a watchdog keep-alive.
    pub fn alive(&self) {
        self.send(&[NotifyState::Watchdog]);
    }

    /// Reports that recovery is over and the listeners are open.
    pub fn ready(&self) {
        self.send(&[NotifyState::Ready]);
    }

    /// Reports a reload of the configuration; `ready` follows.
    pub fn reloading(&self) {
        let now = NotifyState::monotonic_usec_now();
        self.send(&[vec![NotifyState::Reloading], now.into_iter().collect()].concat());
    }

    /// Reports the beginning of the end.
    pub fn stopping(&self) {
        self.send(&[NotifyState::Stopping]);
    }

    /// Sends the status text if it has changed.
    pub fn status(&mut self, status: impl FnOnce() -> String) {
        if !self.listens {
            return;
        }
        // A line break would begin another notification.
        let status = status().replace('\n', " ");
        if status != self.sent {
            self.send(&[NotifyState::Status(&status)]);
            self.sent = status;
        }
    }

    fn send(&self, state: &[NotifyState<'_>]) {
        if self.listens {
            // An error loses only the notification.
            drop(sd_notify::notify(state));
        }
    }
}
