//! The events of the owner loop.

use std::collections::BTreeMap;

use kernel::{BoardName, TaskId, Waiting};
use tokio::sync::oneshot;

use super::action::BoardWork;
use super::admission::StartClaim;
use super::capacity::Capacity;
use super::snapshot::Snapshot;
use super::stopping::{StopMode, StopPlan};
use crate::run::key::TaskKey;
use crate::run::report::Report;
use base::failure::Failure;

/// A change, or a request to the owner loop.
#[derive(Debug)]
pub enum Event {
    /// A board has committed a change.
    BoardChanged(BoardName),
    /// A served board was found to be damaged.
    BoardDamaged(BoardName, Failure),
    /// A board has promoted the tasks that were due, or failed to.
    Woken(BoardName, Result<(), Failure>),
    /// Pending work of a board, read after a change.
    BoardRead(BoardName, Result<Box<BoardWork>, Failure>),
    Run(TaskKey, Report),
    /// The timer has expired.
    Tick,
    /// The host's clock was set.
    ClockSet,
    Reload,
    /// Stop the daemon; the reply describes the consequences for its workers.
    Stop(StopMode, oneshot::Sender<StopPlan>),
    /// A signal to stop; each one is more urgent than the last.
    Interrupted,
    /// The time limit of a drain has passed.
    DrainOver,
    /// The watchdog checks that the loop decides on events.
    Beat(oneshot::Sender<()>),
    /// A request for the state of the daemon.
    Look(oneshot::Sender<Snapshot>),
    /// A request for the reasons why tasks do not run.
    Why(Vec<StartClaim>, oneshot::Sender<BTreeMap<TaskId, Waiting>>),
    /// Stop serving a board, unless one of its runs is live.
    Forget(BoardName, oneshot::Sender<Result<(), Failure>>),
    /// A request for the current capacity, to see which tasks may start without starting them.
    Room(oneshot::Sender<Capacity>),
}
