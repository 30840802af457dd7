//! Input of the owner loop from a board, and the actions that the loop decides on.

use kernel::{BoardName, Candidate, Hold, Run, TaskId, Timestamp};
use shim::rundir::StopRequest;

use super::admission::StartClaim;
use super::backoff::BreakerChange;
use super::capacity::Capacity;
use crate::run::attempt::Attempt;
use crate::run::key::TaskKey;
use crate::run::live::ShimHandle;
use base::failure::Failure;

/// Pending work of a board, beside its live runs.
#[derive(Debug)]
pub struct BoardWork {
    /// Tasks that may start, in order of start, each with its start claim.
    pub admitted: Vec<(Candidate, StartClaim)>,
    /// True if more tasks could start without the live runs and the failures.
    pub left: bool,
    /// True if a task waits only for memory, load or pressure of the host.
    pub(crate) lacks_headroom: bool,
    /// Number of ready tasks with an assignee, tasks that may start included.
    pub ready: u64,
    /// True if the board has, or had, a tenant.
    pub has_tenants: bool,
    /// Tasks whose assignee names no lane here, with the reason as text, if not recorded yet.
    pub unknown: Vec<(TaskId, String)>,
    /// Time from which the next read searches for such tasks.
    pub noted: Timestamp,
    /// Runs to be ended.
    pub(crate) to_stop: Vec<Run>,
    /// Breakers that the board stores.
    pub breakers: Vec<Hold>,
    /// Next time at which the board has something to promote.
    pub(crate) next_wake: Option<Timestamp>,
}

/// An action for the loop to carry out.
#[derive(Debug)]
pub(crate) enum Action {
    /// Read the pending work of a board, and send it as an event. The time is the start of the search for tasks whose
    /// assignee is no lane.
    Read(BoardName, Box<Capacity>, Timestamp),
    /// Let a board promote the tasks that are due.
    Wake(BoardName),
    /// Stop serving a board.
    Withdraw(BoardName, Failure),
    /// Run a task.
    Start(BoardName, Box<Attempt>),
    /// Give up the start of a run without a shim.
    GiveUp(TaskKey),
    /// Ask a shim to end its run.
    Stop(TaskKey, ShimHandle, StopRequest),
    /// Record on a task that nothing here can run it.
    NoteNonspawnable(TaskKey, String),
    /// Store a breaker on a board, or remove it.
    Keep(BoardName, BreakerChange),
    /// Set the timer.
    Arm(Option<Timestamp>),
    /// Print a message on the daemon's terminal.
    Say(String),
    /// Start the time limit of a drain.
    LimitDrain,
    Reload,
    /// End the loop.
    Finish,
}
