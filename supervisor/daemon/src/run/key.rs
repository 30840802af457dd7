//! Key of a task and its live run: board and task.

use kernel::{BoardName, TaskId};

/// A task on a board. At most one run of it is open, so it also identifies a live run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey {
    pub board: BoardName,
    pub task: TaskId,
}

impl std::fmt::Display for TaskKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.board, self.task)
    }
}
