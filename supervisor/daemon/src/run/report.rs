//! Reports of runs to the owner loop, and the queue of these reports.

use std::time::Duration;

use kernel::{Finished, RunId, Timestamp};
use shim::rundir::StartedRecord;
use tokio::sync::{mpsc, oneshot};
use workspace::CheckedOut;

use super::environment::Environment;
use super::key::TaskKey;
use super::live::{LiveRun, Phase, ShimHandle};
use base::failure::Failure;

/// Capacity of the queue. A run makes few reports, and waits while the queue is full. The owner loop never waits for a run,
/// so the queue has to hold no more than a burst of simultaneous starts and ends.
const BOUND: usize = 256;

/// Report of a run, or of the start of one.
#[derive(Debug)]
pub enum Report {
    /// The task is claimed and the run is on the board.
    Claimed(Box<LiveRun>),
    /// The worktree of the run is being made; this many of its files are written.
    CheckingOut(CheckedOut),
    /// The shim of the run was started.
    Launched(ShimHandle),
    /// The command of the worker has started, at this time; none if an earlier daemon has recorded the start.
    Started(Box<StartedRecord>, Option<Timestamp>),
    /// No process of the run is left, and its end is on the board. None if there was no end to record.
    Ended(Option<Box<Ended>>),
    /// The task could not be claimed: another caller was first, or the board cannot be written.
    ClaimFailed(Failure),
    /// The start failed because of an environment.
    EnvironmentFailed(Environment, String),
    /// The start failed because the host lacks a resource for now; no other start would succeed either.
    Shortage(String),
    /// The task cannot start now, and no event will announce when it can.
    Deferred(String),
    /// The request to end the run did not reach its shim.
    StopFailed,
    /// The end is delayed, for this reason.
    Delayed(Phase, String),
    /// No process of the run is left, and its end is about to be recorded. From its reply on, the owner loop keeps the daemon
    /// running until the end is recorded.
    Finishing(oneshot::Sender<()>),
    /// SIGKILL does not end the processes of the run that the text names. The run may have ended since.
    Unkillable(RunId, String),
}

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Consequences for its task.
    pub finished: Finished,
    /// Time for which its command ran; none if it never started, or if unknown.
    pub lived: Option<Duration>,
    /// Time of its end, if known. The board may have recorded it later.
    pub at: Option<Timestamp>,
}

/// Sending end of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Reports(mpsc::Sender<(TaskKey, Report)>);

/// Receiving end of the queue.
pub(crate) type ReportsInbox = mpsc::Receiver<(TaskKey, Report)>;

impl Reports {
    pub(crate) fn queue() -> (Self, ReportsInbox) {
        let (reports, inbox) = mpsc::channel(BOUND);
        (Reports(reports), inbox)
    }

    /// Reports to the owner loop. Waits while the queue is full.
    pub(crate) async fn tell(&self, key: &TaskKey, report: Report) {
        // The send fails only after the end of the loop and its daemon. The next daemon reads the board.
        drop(self.0.send((key.clone(), report)).await);
    }

    /// Reports progress to the owner loop. A report is dropped if the queue is full, because the next one replaces it.
    pub(crate) fn offer(&self, key: &TaskKey, report: Report) {
        drop(self.0.try_send((key.clone(), report)));
    }

    /// Announces that the end of a run is about to be recorded, and waits for the reply of the owner loop. Returns false if
    /// the loop has ended: the lock of the root may then be free, and the next daemon records the end.
    pub(crate) async fn announce_end(&self, key: &TaskKey) -> bool {
        let (known, answer) = oneshot::channel();
        self.tell(key, Report::Finishing(known)).await;
        answer.await.is_ok()
    }
}
