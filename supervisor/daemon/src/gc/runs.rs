//! Collects directories and homes of runs that are over: leftovers of removals that failed or were interrupted.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kernel::Run;
use shim::rundir::{LockState, RunDir, RunDirError};
use workspace::{Name, Size};

use super::{CollectResult, Sweep, removal_checks};
use host::{ended, remove};

/// Collects the directory of a run that is over or unknown to the board.
pub(super) fn directory(path: &Path, sweep: Sweep) -> CollectResult {
    let take = || {
        removal_checks::directory(path)?;
        let stuck = |e: &dyn std::error::Error| CollectResult::Stuck(base::failure::with_causes(e));
        let size = size_of(path)?;
        // A name with a dot marks an interrupted removal: no shim can find the directory any more.
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            if sweep == Sweep::Remove {
                std::fs::remove_dir_all(path).map_err(|e| CollectResult::Stuck(e.to_string()))?;
            }
            return Ok(CollectResult::Gone(size));
        }
        let dir = match RunDir::open(path) {
            Ok(dir) => dir,
            // The directory was copied from another root, whose run it names. Only the copy is removed; the run
            // itself belongs to the other root.
            Err(RunDirError::Copied { .. }) => {
                if sweep == Sweep::Remove {
                    std::fs::remove_dir_all(path).map_err(|e| CollectResult::Stuck(e.to_string()))?;
                }
                return Ok(CollectResult::Gone(size));
            }
            Err(error) => return Err(stuck(&error)),
        };
        let LockState::Free(guard) = dir.lock_state().map_err(|e| stuck(&e))? else {
            return Err(CollectResult::Stuck("a process of that run still lives".to_owned()));
        };
        if sweep == Sweep::Remove {
            ended::remove(&dir, guard).map_err(CollectResult::Stuck)?;
        }
        Ok(CollectResult::Gone(size))
    };
    take().unwrap_or_else(|result| result)
}

/// Collects the home and the temporary files of such a run.
pub(super) fn home(path: &Path, run: Option<&Run>, sweep: Sweep) -> CollectResult {
    let take = || {
        let meta = removal_checks::directory(path)?;
        if meta.uid() != removal_checks::own_uid() {
            return Err(CollectResult::Foreign(format!("it belongs to uid {}", meta.uid())));
        }
        let mut size = Size { bytes: 0, entries: 1 };
        for part in ["home", "tmp"] {
            let meta = match removal_checks::directory(&path.join(part)) {
                Ok(meta) => meta,
                Err(CollectResult::Absent) => continue,
                Err(result) => return Err(result),
            };
            let expected = run.and_then(|run| run.worker_uid);
            if meta.uid() != removal_checks::own_uid() && expected.is_some_and(|uid| uid != meta.uid()) {
                return Err(CollectResult::Foreign(format!("{part} in it belongs to uid {}", meta.uid())));
            }
            let name = Name::new(part).map_err(|e| CollectResult::Stuck(e.to_string()))?;
            let held = removal_checks::measure(removal_checks::identity(meta.uid()), path, &name)?;
            size = Size { bytes: size.bytes + held.bytes, entries: size.entries + held.entries };
        }
        if sweep == Sweep::Remove {
            remove::remove_forgotten(path).map_err(|stays| CollectResult::Stuck(stays.to_string()))?;
        }
        Ok(CollectResult::Gone(size))
    };
    take().unwrap_or_else(|result| result)
}

/// Returns the size of a directory that only this program writes.
fn size_of(path: &Path) -> Result<Size, CollectResult> {
    let entries = std::fs::read_dir(path).map_err(|e| CollectResult::Stuck(e.to_string()))?;
    let files = entries.flatten().filter_map(|entry| entry.metadata().ok());
    Ok(files.fold(Size { bytes: 0, entries: 1 }, |size, meta| Size {
        bytes: size.bytes + meta.blocks() * 512,
        entries: size.entries + 1,
    }))
}
