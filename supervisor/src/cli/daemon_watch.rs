//! Watches the daemon of a board that a command follows. If the daemon ends, the command reports this and continues.

use crate::client::Client;
use base::cli_context;
use base::owner::OwnerLock;
use base::terminal::complain;

/// True if there was a daemon at the last look.
#[derive(Debug, Default)]
pub(super) struct DaemonWatch {
    had: bool,
}

impl DaemonWatch {
    /// Checks for the daemon, and warns each time that it has ended.
    pub(super) fn check(&mut self, client: &Client) {
        // A worker may not read the root; it reaches the daemon through its own socket.
        let has = client.worker().is_none() && OwnerLock::daemon(client.root()).is_some();
        if self.had && !has {
            complain(&cli_context::repeated(&format!(
                "warning: no daemon serves {} any more. Running workers continue, and their ends are recorded when one is started again: \
                 supervisor daemon",
                client.root().dir().display()
            )));
        }
        self.had = has;
    }
}
