//! `lock`: held by a shim as long as it lives. The kernel frees it at the shim's death, however it dies.

use std::io;
use std::path::Path;

use crate::lock_file::LockFile;

/// The run's lock, held. Dropping it frees the lock.
///
/// The file is close-on-exec: if a worker inherited the lock, its run would look alive after its end.
#[derive(Debug)]
pub struct LockGuard {
    _held: LockFile,
}

/// Outcome of an attempt to take the lock.
#[derive(Debug)]
pub enum LockState {
    /// The shim has it, and so lives.
    Held,
    /// The lock was free; now the caller has it.
    Free(LockGuard),
}

/// Takes the lock if it is free.
pub(super) fn try_lock(path: &Path) -> io::Result<LockState> {
    Ok(match LockFile::try_lock(path)? {
        Some(held) => LockState::Free(LockGuard { _held: held }),
        None => LockState::Held,
    })
}

/// Takes the lock, waiting until it is free.
pub(super) fn lock(path: &Path) -> io::Result<LockGuard> {
    Ok(LockGuard { _held: LockFile::lock(path)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_seen_and_a_dropped_one_is_free() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let guard = lock(&path).unwrap();
        assert!(matches!(try_lock(&path).unwrap(), LockState::Held));
        drop(guard);
        assert!(matches!(try_lock(&path).unwrap(), LockState::Free(_)));
    }
}
