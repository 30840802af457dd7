//! Lock files of git in a repository. A killed git leaves them behind, and they are removed. A live git of the owner keeps its
//! own, for example `git commit` while its editor is open.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err as fs;

/// Longest wait for a lock that another git has. Most are held for milliseconds.
const LONGEST: Duration = Duration::from_secs(1);
/// Pause between two looks, each of which reads the open files of all processes.
const PAUSE: Duration = Duration::from_millis(100);

/// Reason why lock files were not removed.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A live process has the lock.
    #[error("{path} is held by {program} (process {pid})")]
    Held { path: PathBuf, program: String, pid: u32 },
    /// The lock file could not be examined or removed.
    #[error("remove {path}, which a killed git has left")]
    Remove { path: PathBuf, source: std::io::Error },
}

/// Directories in which a git works that may have a lock: git changes into the top of its working tree before it locks anything.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    /// Working tree of the task.
    pub(crate) tree: &'a Path,
    /// Directories of the repository that share its branches.
    pub(crate) shared: [&'a Path; 2],
    /// Directory of all worktrees. A git in another one works for another task.
    pub(crate) worktrees: &'a Path,
}

/// Lock file, as it was found.
struct Lock<'a> {
    path: &'a Path,
    /// Device, inode and time of change, which tell it from a later file of the same name.
    identity: Identity,
}

#[derive(PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Identity {
    fn of(found: &std::fs::Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino(), changed: (found.ctime(), found.ctime_nsec()) }
    }
}

/// Removes the lock files that a killed git has left. Returns true if there were any.
///
/// # Errors
/// [`LockError::Held`] if a live process may have one of them, also after a short wait. Then all of them stay.
pub(crate) fn remove_stale(paths: &[PathBuf], around: &Surroundings<'_>) -> Result<bool, LockError> {
    let until = Instant::now() + LONGEST;
    loop {
        let found = find(paths)?;
        if found.is_empty() {
            return Ok(false);
        }
        let Some(held) = holder(&found, around) else { return remove(&found) };
        if Instant::now() >= until {
            return Err(held);
        }
        std::thread::sleep(PAUSE);
    }
}

fn find(paths: &[PathBuf]) -> Result<Vec<Lock<'_>>, LockError> {
    let mut found = Vec::new();
    for path in paths {
        match fs::symlink_metadata(path) {
            Ok(meta) => found.push(Lock { path, identity: Identity::of(&meta) }),
            Err(error) if is_absent(&error) => {}
            Err(source) => return Err(LockError::Remove { path: path.clone(), source }),
        }
    }
    Ok(found)
}

/// Removes the locks that are still the same files: a lock of the same name that came since then is another git's.
fn remove(locks: &[Lock<'_>]) -> Result<bool, LockError> {
    let mut removed = false;
    for lock in locks {
        let failed = |source| LockError::Remove { path: lock.path.to_owned(), source };
        match fs::symlink_metadata(lock.path) {
            Ok(meta) if Identity::of(&meta) == lock.identity => match fs::remove_file(lock.path) {
                Ok(()) => removed = true,
                Err(error) if is_absent(&error) => {}
                Err(source) => return Err(failed(source)),
            },
            Ok(_) => {}
            Err(error) if is_absent(&error) => {}
            Err(source) => return Err(failed(source)),
        }
    }
    Ok(removed)
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Returns the first live process that may have one of the locks: it has the file open, or it is a git that works in the
/// surroundings. Git closes the file of a lock while an editor or a hook runs, so open files alone do not show it.
fn holder(locks: &[Lock<'_>], around: &Surroundings<'_>) -> Option<LockError> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok());
    for process in processes {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == own {
            continue;
        }
        let process = process.path();
        let program = fs::read_to_string(process.join("comm")).unwrap_or_default().trim_end().to_owned();
        let is_git = program.starts_with("git");
        let lock = locks
            .iter()
            .find(|lock| (is_git && may_work_in(&process, around, lock.path)) || has_open(&process, lock));
        if let Some(lock) = lock {
            return Some(LockError::Held { path: lock.path.to_owned(), program, pid });
        }
    }
    None
}

/// Returns true if the working directory of a git is one from which it takes the lock. A directory that cannot be read counts
/// as one if the process is of the lock's own user.
fn may_work_in(process: &Path, around: &Surroundings<'_>, lock: &Path) -> bool {
    let at = match fs::read_link(process.join("cwd")) {
        Ok(at) => at,
        Err(error) if is_absent(&error) => return false,
        Err(_) => {
            let owner = |path: &Path| fs::symlink_metadata(path).map(|found| found.uid()).ok();
            return owner(process).is_some_and(|uid| owner(lock) == Some(uid));
        }
    };
    let is_beside = at.starts_with(around.worktrees);
    at.starts_with(around.tree) || (!is_beside && around.shared.iter().any(|shared| at.starts_with(shared)))
}

/// Returns true if a process has the file of a lock open. Its descriptors can be read by root and by its own user.
fn has_open(process: &Path, lock: &Lock<'_>) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors.filter_map(|entry| entry.ok()).any(|descriptor| {
        fs::metadata(descriptor.path()).is_ok_and(|open| {
            open.is_file() && open.dev() == lock.identity.device && open.ino() == lock.identity.inode
        })
    })
}
