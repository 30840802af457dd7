//! What the service manager is told (`sd_notify(3)`): ready, reloading, stopping, and what is going on.

use sd_notify::NotifyState;

use crate::daemon::owner::dispatcher::Dispatcher;

/// The way to the service manager. Without one, nothing is told.
#[derive(Debug)]
pub(in crate::daemon) struct Manager {
    listens: bool,
    told: String,
}

impl Manager {
    /// The manager that has started this process, if one has and wants to hear.
    pub(in crate::daemon) fn find() -> Self {
        Manager { listens: std::env::var_os("NOTIFY_SOCKET").is_some(), told: String::new() }
    }

    /// Recovery is over and the doors are open.
    pub(in crate::daemon) fn ready(&self) {
        self.tell(&[NotifyState::Ready]);
    }

    /// The configuration is read again; `ready` follows.
    pub(in crate::daemon) fn reloading(&self) {
        let now = NotifyState::monotonic_usec_now();
        self.tell(&[vec![NotifyState::Reloading], now.into_iter().collect()].concat());
    }

    /// The end has begun.
    pub(in crate::daemon) fn stopping(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    /// What is going on, where that has changed.
    pub(in crate::daemon) fn status(&mut self, dispatcher: &Dispatcher) {
        if !self.listens {
            return;
        }
        let status = dispatcher.summary();
        if status != self.told {
            self.tell(&[NotifyState::Status(&status)]);
            self.told = status;
        }
    }

    fn tell(&self, state: &[NotifyState<'_>]) {
        if self.listens {
            // A service manager that does not listen loses only the notice.
            drop(sd_notify::notify(state));
        }
    }
}
