//! Reports of runs to the owner loop, and their queue.

use std::time::Duration;

use kernel::{Finished, RunId, Timestamp};
use shim::rundir::StartedRecord;
use tokio::sync::{mpsc, oneshot};
use workspace::CheckedOut;

use super::environment::Environment;
use super::key::TaskKey;
use super::live::{LiveRun, Phase, ShimHandle};
use base::failure::Failure;

/// Capacity of the queue. A run makes a handful of reports in its life and waits while the queue is full. The owner
/// loop never waits for a run, so the queue only evens out many simultaneous starts and ends.
const BOUND: usize = 256;

#[derive(Debug)]
pub enum Report {
    /// The task is claimed and the run is on the board.
    Claimed(Box<LiveRun>),
    /// Its worktree is being made.
    CheckingOut(CheckedOut),
    Launched(ShimHandle),
    /// The worker's command has started, at this time if it is news. None if an earlier daemon knew.
    Started(Box<StartedRecord>, Option<Timestamp>),
    /// Nothing of the run is left, and its end is on the board. None if there is no end to record.
    Ended(Option<Box<Ended>>),
    /// The task could not be claimed: another caller was first, or the board cannot be written.
    ClaimFailed(Failure),
    /// The start failed because of an environment.
    EnvironmentFailed(Environment, String),
    /// The start failed because the host lacks a resource for now; no other start would succeed either.
    Shortage(String),
    /// The task cannot start now, and it is not announced when it can.
    Deferred(String),
    /// The shim could not be asked to end the run.
    StopFailed,
    /// The end is delayed, for this reason.
    Delayed(Phase, String),
    /// Nothing of the run is left, and its end is being recorded. From the reply on, the daemon counts the run as its
    /// work until the end is recorded.
    Finishing(oneshot::Sender<()>),
    /// SIGKILL does not end the run's processes, which the text names. The run may have ended since.
    Unkillable(RunId, String),
}

/// A run that is over.
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
        // The loop ends only with the daemon; the next one reads the board.
        drop(self.0.send((key.clone(), report)).await);
    }

    /// Reports progress to the owner loop, unless the queue is full: the next report is as good.
    pub(crate) fn offer(&self, key: &TaskKey, report: Report) {
        drop(self.0.try_send((key.clone(), report)));
    }

    /// Announces that the end of a run is about to be recorded, and waits for the owner loop's reply. Returns false if
    /// the loop has ended: then the root's lock may be free, and the run belongs to the next daemon.
    pub(crate) async fn announce_end(&self, key: &TaskKey) -> bool {
        let (known, answer) = oneshot::channel();
        self.tell(key, Report::Finishing(known)).await;
        answer.await.is_ok()
    }
}
