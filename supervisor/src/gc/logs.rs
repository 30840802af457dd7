//! The logs of runs that nobody reads any more.

use kernel::{BoardName, TaskId};
use workspace::Name;

use crate::failure::Failure;
use crate::paths::Root;

/// Removes every log of a task that is no more.
pub(crate) fn remove_all(root: &Root, board: &BoardName, task: &TaskId) -> Result<(), Failure> {
    let fail = |e: &dyn std::error::Error| {
        Failure::failed(format!("the logs of {task} are not removed: {}", crate::lanes::with_causes(e)))
    };
    let name = Name::new(task.as_str()).map_err(|e| fail(&e))?;
    let base = root.logs(board);
    if !base.is_dir() {
        return Ok(());
    }
    workspace::remove_tree(&base, &name).map(drop).map_err(|e| fail(&e))
}
