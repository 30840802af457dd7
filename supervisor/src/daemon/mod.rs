//! The daemon: one owner loop that decides, and tracked tasks that act.
//!
//! ```text
//!   commits ─┐
//!   exits  ──┤→ Event → Dispatcher::decide → Action → run_task (claim, prepare, spawn, watch, finish)
//!   timer  ──┤                                     → read a board, stop a run, arm the timer
//!   signals ─┘
//! ```
//!
//! Life is watched with pidfds. A task is claimable again only after `finish_run`, and that is called only with proof
//! that nothing of the run is left (`settle.rs`).

mod action;
mod admission;
mod artifacts;
mod backoff;
mod board;
mod cgroup;
mod claim;
mod closed;
mod conclude;
mod controllers;
mod denial;
mod dispatcher;
mod environment;
mod external;
mod fault;
mod files;
mod finish;
mod handback;
mod helper;
mod host;
mod launch;
mod live;
mod look;
mod manager;
mod neighbours;
mod pass;
mod place;
mod pokes;
mod recover;
mod remains;
mod remove;
mod room;
mod run;
mod run_task;
mod settle;
mod sockets;
mod spare;
mod starts;
mod stopping;
mod survivors;
mod timer;
mod uids;
mod watch;
mod why;

pub(crate) use admission::Claim;
pub(crate) use artifacts::declared;
pub(crate) use backoff::Broken;
pub(crate) use board::REPLY_AGE;
pub(crate) use cgroup::{of_root as cgroup_of, processes as cgroup_processes};
pub(crate) use external::{HandLeases, WorkerUids, provide as provide_external};
pub(crate) use files::{place_of, provide};
pub(crate) use handback::main as handback_main;
pub(crate) use helper::{main as helper_main, work as work_as};
pub(crate) use host::examine_host;
pub(crate) use live::{LiveRun, Phase, Snapshot, Waiting};
pub(crate) use look::{look, nonspawnable};
pub(crate) use place::{Presence, check as check_workspace, require_answer, system_reads};
pub(crate) use recover::remove_ended as remove_ended_run;
pub(crate) use remove::remove_forgotten as remove_home;
pub(crate) use room::Room;
pub(crate) use run::{Extent, run};
pub(crate) use stopping::{StopMode, StopPlan};
pub(crate) use uids::{Uids, uids_of};
pub(crate) use why::ask as ask_why;

use kernel::{BoardName, TaskId};

/// A task on a board: at most one run of it is open, so it names a live run as well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskKey {
    /// The board.
    pub(crate) board: BoardName,
    /// The task.
    pub(crate) task: TaskId,
}

impl std::fmt::Display for TaskKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.board, self.task)
    }
}

/// Everything that the owner loop can hear of.
#[derive(Debug)]
pub(crate) enum Event {
    /// A board has committed something.
    BoardChanged(BoardName),
    /// A board that is served was found to be damaged.
    BoardDamaged(BoardName, crate::failure::Failure),
    /// A board was asked to promote what is due, and has done so or failed.
    Woken(BoardName, Result<(), crate::failure::Failure>),
    /// What a board has to do, read after a change.
    BoardRead(BoardName, Result<Box<action::BoardWork>, crate::failure::Failure>),
    /// A run is claimed and its row is there.
    Claimed(TaskKey, Box<LiveRun>),
    /// The shim of a run is there.
    Launched(TaskKey, live::ShimHandle),
    /// The worker's command has been started.
    Started(TaskKey, Box<crate::rundir::StartedRecord>),
    /// Nothing of a run is left, and the board knows it. None where the claim was not had.
    Ended(TaskKey, Option<kernel::Finished>),
    /// A task could not be claimed: somebody was faster, or the board cannot be written.
    ClaimFailed(TaskKey, crate::failure::Failure),
    /// A start failed because of what every such start needs.
    EnvironmentFailed(TaskKey, environment::Environment, String),
    /// A start failed because the host lacks something for now: nothing else will start either.
    Shortage(String),
    /// A task cannot start now, and nothing will say when it can.
    Deferred(TaskKey, String),
    /// A shim could not be asked to end its run.
    StopFailed(TaskKey),
    /// A run cannot be finished yet; the words say why.
    Held(TaskKey, Phase, String),
    /// The timer has gone off.
    Tick,
    /// Somebody has set the clock of the host.
    ClockSet,
    /// The configuration is to be read again.
    Reload,
    /// The daemon is to stop; the asker is told what that comes to.
    Stop(StopMode, tokio::sync::oneshot::Sender<StopPlan>),
    /// A signal tells the daemon to stop: each one is one step sharper.
    Interrupted,
    /// The time limit of a drain is over.
    DrainOver,
    /// Somebody wants to see what is going on.
    Look(tokio::sync::oneshot::Sender<Snapshot>),
    /// Somebody wants to know why tasks do not run.
    Why(
        Vec<admission::Claim>,
        tokio::sync::oneshot::Sender<std::collections::BTreeMap<TaskId, kernel::Waiting>>,
    ),
    /// A board is to be served no more, where none of its runs is live.
    Forget(BoardName, tokio::sync::oneshot::Sender<Result<(), crate::failure::Failure>>),
    /// Somebody wants to know what may start, without starting it.
    Room(tokio::sync::oneshot::Sender<Room>),
}
