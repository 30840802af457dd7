//! What the owner loop reads of a board, and the actions that it decides on.

use kernel::{BoardName, Candidate, Hold, Run, TaskId, Timestamp};
use shim::rundir::StopRequest;

use super::admission::Claim;
use super::backoff::Kept;
use super::room::Room;
use crate::daemon::run::attempt::Attempt;
use crate::daemon::run::key::TaskKey;
use crate::daemon::run::live::ShimHandle;
use crate::failure::Failure;

/// What a board has to do.
#[derive(Debug)]
pub(crate) struct BoardWork {
    /// Tasks that may start, in the order in which they should, each with what it takes.
    pub(in crate::daemon) admitted: Vec<(Candidate, Claim)>,
    /// Whether others could start but for what runs or broke.
    pub(in crate::daemon) left: bool,
    /// Whether something could start but for the memory or the load of the host.
    pub(in crate::daemon) lacks_headroom: bool,
    /// How many tasks with an assignee are ready, those that may start included.
    pub(in crate::daemon) ready: u64,
    /// Tasks whose assignee names no lane here, with that in words, where it is not noted yet.
    pub(in crate::daemon) unknown: Vec<(TaskId, String)>,
    /// From when on to look for such tasks the next time.
    pub(in crate::daemon) noted: Timestamp,
    /// Runs that are to be ended.
    pub(in crate::daemon) to_stop: Vec<Run>,
    /// The breakers that the board keeps.
    pub(in crate::daemon) breakers: Vec<Hold>,
    /// When the board next wants to be woken.
    pub(in crate::daemon) next_wake: Option<Timestamp>,
}

/// What the loop is to do.
#[derive(Debug)]
pub(in crate::daemon) enum Action {
    /// Read what a board has to do beside what runs, and send it as an event. The time is from when on tasks are looked
    /// for whose assignee is no lane.
    Read(BoardName, Box<Room>, Timestamp),
    /// Let a board promote what is due.
    Wake(BoardName),
    /// Serve a board no more.
    Withdraw(BoardName, Failure),
    /// Run a task.
    Start(BoardName, Box<Attempt>),
    /// Give up the start of a run that has no shim yet.
    GiveUp(TaskKey),
    /// Ask a shim to end its run.
    Stop(TaskKey, ShimHandle, StopRequest),
    /// Record that nothing here can run a task.
    NoteNonspawnable(TaskKey, String),
    /// Have a board keep a breaker, or keep it no more.
    Keep(BoardName, Kept),
    /// Set the timer.
    Arm(Option<Timestamp>),
    /// Tell the person at the terminal.
    Say(String),
    /// Begin the time limit of a drain.
    LimitDrain,
    /// Read the configuration.
    Reload,
    /// End the loop.
    Finish,
}
