//! What a run reports to the owner loop, and the queue in which that waits.

use std::time::Duration;

use kernel::{Finished, RunId, Timestamp};
use shim::rundir::StartedRecord;
use tokio::sync::{mpsc, oneshot};

use super::environment::Environment;
use super::key::TaskKey;
use super::live::{LiveRun, Phase, ShimHandle};
use crate::failure::Failure;

/// How many reports wait at most. A run makes a handful in its whole life and waits for room, and the owner loop takes
/// one after the other without waiting for a run: the queue only evens out many runs that start or end at once.
const BOUND: usize = 256;

/// What a run reports.
#[derive(Debug)]
pub(crate) enum Report {
    /// It is claimed and its row is there.
    Claimed(Box<LiveRun>),
    Launched(ShimHandle),
    /// The worker's command has been started; since when, where that is news. What an earlier daemon knew is only shown.
    Started(Box<StartedRecord>, Option<Timestamp>),
    /// Nothing of it is left, and the board knows it. None where the claim was not had.
    Ended(Option<Box<Ended>>),
    /// Its task could not be claimed: somebody was faster, or the board cannot be written.
    ClaimFailed(Failure),
    /// Its start failed because of what every such start needs.
    EnvironmentFailed(Environment, String),
    /// Its start failed because the host lacks something for now: nothing else will start either.
    Shortage(String),
    /// Its task cannot start now, and nothing will say when it can.
    Deferred(String),
    /// Its shim could not be asked to end it.
    StopFailed,
    /// Its end is delayed; the text says by what.
    Delayed(Phase, String),
    /// Nothing of it is left, and its end is being recorded: from the answer on, the daemon does something for it until it has
    /// ended.
    Finishing(oneshot::Sender<()>),
    /// SIGKILL does not end its processes; the text names them. The shim said so of this run, which may be over by now.
    Unkillable(RunId, String),
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// What that did to its task.
    pub(crate) finished: Finished,
    /// How long its command ran; none where it was never started, or where that is unknown.
    pub(crate) lived: Option<Duration>,
    /// When nothing of it was left, where that is known. The board may have been slow to take it in.
    pub(crate) at: Option<Timestamp>,
}

/// The sending end of the queue.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct Reports(mpsc::Sender<(TaskKey, Report)>);

/// The owner loop's end of the queue.
pub(in crate::daemon) type ReportsInbox = mpsc::Receiver<(TaskKey, Report)>;

impl Reports {
    /// Makes the queue.
    pub(in crate::daemon) fn queue() -> (Self, ReportsInbox) {
        let (reports, inbox) = mpsc::channel(BOUND);
        (Reports(reports), inbox)
    }

    /// Reports to the owner loop, when there is room.
    pub(in crate::daemon) async fn tell(&self, key: &TaskKey, report: Report) {
        // The owner loop has ended only when the daemon stops; what it did not hear the next one reads from the board.
        drop(self.0.send((key.clone(), report)).await);
    }

    /// Announces that the end of a run is about to be recorded, and waits until the owner loop knows. False where the loop has ended:
    /// then the lock of the root may be free, and the run is the next daemon's.
    pub(in crate::daemon) async fn announce_end(&self, key: &TaskKey) -> bool {
        let (known, answer) = oneshot::channel();
        self.tell(key, Report::Finishing(known)).await;
        answer.await.is_ok()
    }
}
