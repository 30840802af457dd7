//! The events of the owner loop.

use std::collections::BTreeMap;

use kernel::{BoardName, TaskId, Waiting};
use tokio::sync::oneshot;

use super::action::BoardWork;
use super::admission::Claim;
use super::room::Room;
use super::snapshot::Snapshot;
use super::stopping::{StopMode, StopPlan};
use crate::daemon::run::key::TaskKey;
use crate::daemon::run::report::Report;
use crate::failure::Failure;

/// Something that has happened, or that is asked.
#[derive(Debug)]
pub(crate) enum Event {
    /// A board has committed something.
    BoardChanged(BoardName),
    /// A board that is served was found to be damaged.
    BoardDamaged(BoardName, Failure),
    /// A board was asked to promote what is due, and has done so or failed.
    Woken(BoardName, Result<(), Failure>),
    /// What a board has to do, read after a change.
    BoardRead(BoardName, Result<Box<BoardWork>, Failure>),
    /// A run reports something.
    Run(TaskKey, Report),
    /// The timer has gone off.
    Tick,
    /// Somebody has set the clock of the host.
    ClockSet,
    /// The configuration is to be read again.
    Reload,
    /// The daemon is to stop; the reply says what that means for its workers.
    Stop(StopMode, oneshot::Sender<StopPlan>),
    /// A signal asks the daemon to stop: each one is more urgent than the last.
    Interrupted,
    /// The time limit of a drain is over.
    DrainOver,
    /// The watchdog wants to know whether events are decided.
    Beat(oneshot::Sender<()>),
    /// Somebody wants to see what is going on.
    Look(oneshot::Sender<Snapshot>),
    /// Somebody wants to know why tasks do not run.
    Why(Vec<Claim>, oneshot::Sender<BTreeMap<TaskId, Waiting>>),
    /// A board is to be served no more, where none of its runs is live.
    Forget(BoardName, oneshot::Sender<Result<(), Failure>>),
    /// Somebody wants to know what may start, without starting it.
    Room(oneshot::Sender<Room>),
}
