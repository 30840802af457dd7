//! `lock`: owned by a shim for its whole life. The kernel frees it at the shim's death, for whatever reason.

use std::io;
use std::path::Path;

use crate::lock_file::LockFile;

/// The owned lock of a run. Dropping it frees the lock.
///
/// The file is close-on-exec: if a worker inherited the lock, its run would look alive after its end.
#[derive(Debug)]
pub struct LockGuard {
    _held: LockFile,
}

/// Outcome of an attempt to take the lock.
#[derive(Debug)]
pub enum LockState {
    /// The shim owns the lock, so it lives.
    Held,
    /// The lock was free. The caller owns it now.
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
