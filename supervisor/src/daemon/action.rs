//! What the owner loop hears of a board, and what it is told to do.

use kernel::{BoardName, Candidate, Run, Timestamp};
use serde::{Deserialize, Serialize};

use super::TaskKey;
use super::live::{LiveRun, ShimHandle, Waiting};
use crate::rundir::StopRequest;

/// How far a daemon goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Horizon {
    /// Until it is told to stop.
    Forever,
    /// Until nothing is left to do, or so many tasks were started and have ended.
    Idle(Option<usize>),
}

/// What a board has to do.
#[derive(Debug)]
pub(crate) struct BoardWork {
    /// Ready tasks, in the order in which they should start, each with the place that it needs for itself.
    pub(super) ready: Vec<(Candidate, Option<String>)>,
    /// Ready tasks whose assignee names no lane here.
    pub(super) nonspawnable: Vec<Candidate>,
    /// Runs that are to be ended.
    pub(super) to_stop: Vec<Run>,
    /// When the board next wants to be woken.
    pub(super) next_wake: Option<Timestamp>,
}

/// What a pass started, and what it left.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DispatchReport {
    /// The runs that are live.
    pub(crate) live: Vec<LiveRun>,
    /// Ready tasks that were not started.
    pub(crate) waiting: Vec<Waiting>,
}

/// What the loop is to do.
#[derive(Debug)]
pub(super) enum Action {
    /// Read what a board has to do, and send it as an event.
    Read(BoardName),
    /// Let a board promote what is due.
    Wake(BoardName),
    /// Run a task.
    Start(BoardName, Box<Candidate>),
    /// Give up the start of a run that has no shim yet.
    GiveUp(TaskKey),
    /// Ask a shim to end its run.
    Stop(TaskKey, ShimHandle, StopRequest),
    /// Record that nothing here can run a task.
    NoteNonspawnable(TaskKey, String),
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
