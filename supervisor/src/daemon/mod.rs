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
//! that nothing of the run is left (`run/settle.rs`).

mod host;
mod lifetime;
mod owner;
mod run;

pub(crate) use host::cgroup::{of_root as cgroup_of, processes as cgroup_processes};
pub(crate) use host::examine::examine_host;
pub(crate) use host::handback::main as handback_main;
pub(crate) use host::job::{main as helper_main, work as work_as};
pub(crate) use host::remove::remove_forgotten as remove_home;
pub(crate) use host::uids::{Uids, uids_of};
pub(crate) use lifetime::{Extent, run};
pub(crate) use owner::admission::Claim;
pub(crate) use owner::backoff::Broken;
pub(crate) use owner::board::REPLY_AGE;
pub(crate) use owner::look::look;
pub(crate) use owner::room::Room;
pub(crate) use owner::stopping::{StopMode, StopPlan};
pub(crate) use owner::why::ask as ask_why;
pub(crate) use run::artifacts::declared;
pub(crate) use run::external::{HandLeases, WorkerUids, provide as provide_external};
pub(crate) use run::files::{place_of, provide};
pub(crate) use run::live::{LiveRun, Phase, Snapshot, Waiting};
pub(crate) use run::place::{Presence, check as check_workspace, require_answer, system_reads};
pub(crate) use run::recover::remove_ended as remove_ended_run;

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
    BoardRead(BoardName, Result<Box<owner::action::BoardWork>, crate::failure::Failure>),
    /// A run is claimed and its row is there.
    Claimed(TaskKey, Box<LiveRun>),
    /// The shim of a run is there.
    Launched(TaskKey, run::live::ShimHandle),
    /// The worker's command has been started.
    Started(TaskKey, Box<crate::rundir::StartedRecord>),
    /// Nothing of a run is left, and the board knows it. None where the claim was not had.
    Ended(TaskKey, Option<kernel::Finished>),
    /// A task could not be claimed: somebody was faster, or the board cannot be written.
    ClaimFailed(TaskKey, crate::failure::Failure),
    /// A start failed because of what every such start needs.
    EnvironmentFailed(TaskKey, run::environment::Environment, String),
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
        Vec<owner::admission::Claim>,
        tokio::sync::oneshot::Sender<std::collections::BTreeMap<TaskId, kernel::Waiting>>,
    ),
    /// A board is to be served no more, where none of its runs is live.
    Forget(BoardName, tokio::sync::oneshot::Sender<Result<(), crate::failure::Failure>>),
    /// Somebody wants to know what may start, without starting it.
    Room(tokio::sync::oneshot::Sender<Room>),
}
