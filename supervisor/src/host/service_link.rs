//! The link to the service manager (`sd_notify(3)`): ready, reloading, stopping, and what is going on.

use std::time::Duration;

use sd_notify::NotifyState;

/// The link to the service manager. Where there is none, nothing is sent.
#[derive(Debug)]
pub(crate) struct ServiceLink {
    listens: bool,
    sent: String,
}

impl ServiceLink {
    /// The link to the manager that has started this process, if one has and listens.
    pub(crate) fn find() -> Self {
        ServiceLink { listens: std::env::var_os("NOTIFY_SOCKET").is_some(), sent: String::new() }
    }

    /// How long the manager waits for the next sign of life (`WatchdogSec=`), where it waits for any.
    pub(crate) fn watchdog() -> Option<Duration> {
        sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero())
    }

    /// A sign of life.
    pub(crate) fn alive(&self) {
        self.send(&[NotifyState::Watchdog]);
    }

    /// Recovery is over and the doors are open.
    pub(crate) fn ready(&self) {
        self.send(&[NotifyState::Ready]);
    }

    /// The configuration is read again; `ready` follows.
    pub(crate) fn reloading(&self) {
        let now = NotifyState::monotonic_usec_now();
        self.send(&[vec![NotifyState::Reloading], now.into_iter().collect()].concat());
    }

    /// The end has begun.
    pub(crate) fn stopping(&self) {
        self.send(&[NotifyState::Stopping]);
    }

    /// What is going on, where that has changed.
    pub(crate) fn status(&mut self, status: impl FnOnce() -> String) {
        if !self.listens {
            return;
        }
        // A line of its own would be another notice.
        let status = status().replace('\n', " ");
        if status != self.sent {
            self.send(&[NotifyState::Status(&status)]);
            self.sent = status;
        }
    }

    fn send(&self, state: &[NotifyState<'_>]) {
        if self.listens {
            // A service manager that does not listen loses only the notice.
            drop(sd_notify::notify(state));
        }
    }
}
