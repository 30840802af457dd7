//! What the start of a run is made from.

use std::path::Path;

use kernel::{BoardName, Run, Task};
use policies::BoardAccess;

/// The places that a run has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) home: &'a Path,
    pub(crate) tmp: &'a Path,
    /// The files of its task, and those handed over to it.
    pub(crate) files: &'a Path,
    /// The file that has its prompt.
    pub(crate) prompt: &'a Path,
    /// The directory of all workspaces of its board.
    pub(crate) workspaces: &'a Path,
    /// The directory with the program `supervisor`.
    pub(crate) bin: &'a Path,
}

/// What the start of a run is made from.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) board: &'a BoardName,
    pub(crate) task: &'a Task,
    pub(crate) run: &'a Run,
    /// What its worker shows to the board.
    pub(crate) token: &'a str,
    pub(crate) places: Places<'a>,
    /// The text of its prompt.
    pub(crate) prompt: &'a str,
    /// The session in which its agent goes on.
    pub(crate) session: Option<&'a str>,
    /// How it reaches the board.
    pub(crate) access: &'a BoardAccess,
    /// When it is ended, in epoch seconds.
    pub(crate) deadline: Option<i64>,
}
