//! Removes logs of deleted tasks, and old logs of runs.

use std::path::Path;

use kernel::{BoardName, Run, RunId, TaskId, Timestamp};
use workspace::{Name, Size};

use super::{CollectResult, Item, Kind, Sweep, removal_checks};
use base::failure::Failure;
use base::paths::Root;

/// Removes every log of a deleted task.
pub fn remove_all(root: &Root, board: &BoardName, task: &TaskId) -> Result<(), Failure> {
    match of_deleted(root, board, task, Sweep::Remove) {
        CollectResult::Absent | CollectResult::Gone(_) => Ok(()),
        CollectResult::Foreign(why) | CollectResult::Stuck(why) => {
            Err(Failure::failed(format!("the logs of {task} are not removed: {why}")))
        }
    }
}

/// Collects all logs of a deleted task. Only this program writes to their directory.
pub(super) fn of_deleted(root: &Root, board: &BoardName, task: &TaskId, sweep: Sweep) -> CollectResult {
    let base = root.logs(board);
    let take = || {
        removal_checks::directory(&base.join(task.as_str()))?;
        let stuck = |e: &dyn std::error::Error| CollectResult::Stuck(base::failure::with_causes(e));
        let name = Name::new(task.as_str()).map_err(|e| stuck(&e))?;
        let size = workspace::measure(&base, &name).map_err(|e| stuck(&e))?;
        if sweep == Sweep::Remove {
            workspace::remove_tree(&base, &name).map_err(|e| stuck(&e))?;
        }
        Ok(CollectResult::Gone(Size { entries: size.entries + 1, ..size }))
    };
    take().unwrap_or_else(|result| result)
}

/// Collects the logs of a task's runs that ended before a time.
pub(super) fn of_task(dir: &Path, task: &TaskId, runs: &[Run], before: Timestamp, sweep: Sweep) -> Vec<Item> {
    let item = |path: &Path, result| Item::for_path(Kind::Log, path, Some(task), result);
    if let Err(result) = removal_checks::directory(dir) {
        return item(dir, result).into_iter().collect();
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| item(path, of_run(path, runs, before, sweep))).collect()
}

fn of_run(path: &Path, runs: &[Run], before: Timestamp, sweep: Sweep) -> CollectResult {
    let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".log")?.parse().ok());
    let Ok(meta) = std::fs::symlink_metadata(path) else { return CollectResult::Absent };
    let Some(number) = number.map(RunId).filter(|_| meta.is_file()) else {
        return CollectResult::Foreign("it is not a log of a run".to_owned());
    };
    let Some(run) = runs.iter().find(|run| run.id == number) else {
        return CollectResult::Foreign("its task has no such run".to_owned());
    };
    if run.ended_at.is_none_or(|ended| ended >= before) {
        return CollectResult::Absent;
    }
    if sweep == Sweep::Remove
        && let Err(e) = std::fs::remove_file(path)
    {
        return CollectResult::Stuck(e.to_string());
    }
    let blocks = std::os::unix::fs::MetadataExt::blocks(&meta);
    // stat(2): in units of 512 bytes, whatever the block size.
    CollectResult::Gone(Size { bytes: blocks * 512, entries: 1 })
}
