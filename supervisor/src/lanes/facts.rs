//! Input for the start of a run.

use std::path::Path;

use kernel::{BoardName, Run, Task};
use policies::BoardAccess;

/// Directories and files of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) home: &'a Path,
    pub(crate) tmp: &'a Path,
    /// Files of the task, and files handed over to it.
    pub(crate) files: &'a Path,
    /// File with the prompt.
    pub(crate) prompt: &'a Path,
    /// Directory of all workspaces of the board.
    pub(crate) workspaces: &'a Path,
    /// Directory of the program `supervisor`.
    pub(crate) bin: &'a Path,
}

/// Input for the start of a run.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) board: &'a BoardName,
    pub(crate) task: &'a Task,
    pub(crate) run: &'a Run,
    /// Token by which the worker identifies itself to the board.
    pub(crate) token: &'a str,
    pub(crate) places: Places<'a>,
    pub(crate) prompt: &'a str,
    /// Session that the agent resumes.
    pub(crate) session: Option<&'a str>,
    /// Access of the worker to the board.
    pub(crate) access: &'a BoardAccess,
    /// Time at which the run is ended, in epoch seconds.
    pub(crate) deadline: Option<i64>,
}
