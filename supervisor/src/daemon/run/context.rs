//! State shared by all runs of a daemon.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kernel::{BoardName, ScheduleName, Timestamp};
use tokio_util::task::TaskTracker;

use super::bells::Bells;
use super::key::TaskKey;
use super::order::Host;
use super::report::{Report, Reports};
use super::starts::Starts;
use crate::config::Tuning;
use crate::plugins::Calls;
use crate::service::Service;
use crate::telemetry::Tracer;

/// Pause between two tries to record a fact on a board that cannot be written.
pub(in crate::daemon) const RETRY: Duration = Duration::from_millis(500);

/// Commands of schedules in progress, by board, schedule and tick.
pub(in crate::daemon) type UnderWay = Mutex<BTreeSet<(BoardName, ScheduleName, Timestamp)>>;

/// State shared by all runs.
#[derive(Debug)]
pub(in crate::daemon) struct Context {
    pub(in crate::daemon) service: Arc<Service>,
    pub(in crate::daemon) host: Host,
    pub(in crate::daemon) reports: Reports,
    pub(in crate::daemon) tasks: TaskTracker,
    pub(in crate::daemon) starts: Starts,
    pub(in crate::daemon) bells: Bells,
    pub(in crate::daemon) tracer: Tracer,
    pub(in crate::daemon) plugins: Calls,
    /// Commands of schedules in progress.
    pub(in crate::daemon) commands: UnderWay,
    /// Overrides of the command line, which also apply after a reload of the configuration.
    pub(in crate::daemon) tuning: Tuning,
}

impl Context {
    /// Has a shim wait for the next run.
    pub(in crate::daemon) fn refill(self: &Arc<Self>) {
        let context = Arc::clone(self);
        self.tasks.spawn_blocking(move || context.host.spares.refill());
    }

    /// Reports to the owner loop. Waits while its queue is full.
    pub(in crate::daemon) async fn tell(&self, key: &TaskKey, report: Report) {
        self.reports.tell(key, report).await;
    }
}
