//! State shared by all runs of a daemon.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kernel::{BoardName, ScheduleName, Timestamp};
use tokio_util::task::TaskTracker;

use super::key::TaskKey;
use super::order::Host;
use super::pending_starts::PendingStarts;
use super::report::{Report, Reports};
use super::wakeups::Wakeups;
use delivery::plugins::Calls;
use net::telemetry::Tracer;
use service::Service;
use setup::config::Tuning;

/// Pause between two tries to record a fact on a board that cannot be written.
pub(crate) const RETRY: Duration = Duration::from_millis(500);

/// Commands of schedules in progress, by board, schedule and tick.
pub(crate) type UnderWay = Mutex<BTreeSet<(BoardName, ScheduleName, Timestamp)>>;

/// State shared by all runs.
#[derive(Debug)]
pub(crate) struct Context {
    pub service: Arc<Service>,
    pub host: Host,
    pub reports: Reports,
    pub tasks: TaskTracker,
    pub pending_starts: PendingStarts,
    pub(crate) wakeups: Wakeups,
    pub tracer: Tracer,
    pub plugins: Calls,
    /// Commands of schedules in progress.
    pub commands: UnderWay,
    /// Overrides of the command line, which also apply after a reload of the configuration.
    pub tuning: Tuning,
}

impl Context {
    /// Starts a shim that waits for the next run, if none waits yet.
    pub(crate) fn refill(self: &Arc<Self>) {
        if !self.host.spares.wants_refill() {
            return;
        }
        let context = Arc::clone(self);
        self.tasks.spawn_blocking(move || context.host.spares.refill());
    }

    /// Reports to the owner loop. Waits while its queue is full.
    pub(crate) async fn tell(&self, key: &TaskKey, report: Report) {
        self.reports.tell(key, report).await;
    }
}
