//! Which task of which board: the name of a live run in this daemon.

use kernel::{BoardName, TaskId};

/// A task on a board: at most one run of it is open, so it names a live run as well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskKey {
    pub(crate) board: BoardName,
    pub(crate) task: TaskId,
}

impl std::fmt::Display for TaskKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.board, self.task)
    }
}
