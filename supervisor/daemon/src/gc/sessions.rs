//! Collects the sessions that the agents of a task keep between its runs. They are removed with the task.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kernel::{BoardName, TaskId};
use workspace::{Job, Name, Size};

use super::{CollectResult, Sweep, removal_checks};
use base::paths::Root;
use host::job;

/// Measures the sessions of a task, or removes them. Blocks.
pub fn of_task(root: &Root, board: &BoardName, task: &TaskId, sweep: Sweep) -> CollectResult {
    let base = root.sessions(board).join(task.as_str());
    let take = || {
        removal_checks::directory(&base)?;
        let mut size = Size { bytes: 0, entries: 1 };
        let stuck = |e: std::io::Error| CollectResult::Stuck(e.to_string());
        for entry in std::fs::read_dir(&base).map_err(stuck)? {
            let name = entry.map_err(stuck)?.file_name();
            let held = of_profile(&base, &name.to_string_lossy(), sweep)?;
            size = Size { bytes: size.bytes + held.bytes, entries: size.entries + held.entries };
        }
        if sweep == Sweep::Remove {
            std::fs::remove_dir(&base).map_err(stuck)?;
        }
        Ok(CollectResult::Gone(size))
    };
    take().unwrap_or_else(|result| result)
}

/// Measures the sessions of one profile, or removes them. The worker owns the directory and may have written anything into
/// it, so a job process under the worker's uid empties it.
pub fn of_profile(base: &Path, name: &str, sweep: Sweep) -> Result<Size, CollectResult> {
    let path = base.join(name);
    let meta = removal_checks::directory(&path)?;
    let name = Name::new(name).map_err(|e| CollectResult::Stuck(e.to_string()))?;
    let identity = removal_checks::identity(meta.uid());
    let size = removal_checks::measure(identity, base, &name)?;
    if sweep == Sweep::Remove {
        let job = Job::RemoveScratch { base: base.to_owned(), name };
        job::work(identity, Vec::new(), vec![path.clone()], job).map_err(removal_checks::stuck)?;
        match std::fs::remove_dir(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(CollectResult::Stuck(e.to_string()));
            }
            _ => {}
        }
    }
    Ok(size)
}
