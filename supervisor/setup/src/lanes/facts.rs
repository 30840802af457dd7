//! Input from which a lane makes the command, the environment and the files of a run.

use std::path::Path;

use kernel::{BoardName, Run, Task};
use policies::BoardAccess;

/// Directories and files of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunPaths<'a> {
    pub workspace: &'a Path,
    pub home: &'a Path,
    pub tmp: &'a Path,
    /// Files of the task, and files handed over to it.
    pub files: &'a Path,
    /// File with the prompt.
    pub prompt: &'a Path,
    /// Directory of all workspaces of the board.
    pub workspaces: &'a Path,
    /// Directory of the program `supervisor`.
    pub bin: &'a Path,
}

/// Facts about a run that fill the templates of its lane.
#[expect(missing_debug_implementations, reason = "it holds a secret, which no log may show")]
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub board: &'a BoardName,
    pub task: &'a Task,
    pub run: &'a Run,
    /// Token by which the worker identifies itself to the board.
    pub token: &'a str,
    pub places: RunPaths<'a>,
    pub prompt: &'a str,
    /// Session that the agent resumes.
    pub session: Option<&'a str>,
    /// Access of the worker to the board.
    pub access: &'a BoardAccess,
    /// Time at which the run is ended, in epoch seconds.
    pub deadline: Option<i64>,
}
