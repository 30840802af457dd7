//! `lock`: held by a shim as long as it lives. The kernel drops it at death, whatever the way.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// The run's lock, held. It is freed when this is dropped.
///
/// The file is close-on-exec: a lock that a worker inherited would make its run look alive for ever.
#[derive(Debug)]
pub(crate) struct LockGuard {
    _held: Flock<File>,
}

/// What an attempt to take the lock found.
#[derive(Debug)]
pub(crate) enum LockState {
    /// Somebody has it: the shim lives.
    Held,
    /// Nobody had it; now the caller does.
    Free(LockGuard),
}

/// Takes the lock if it is free.
pub(super) fn try_lock(path: &Path) -> io::Result<LockState> {
    match Flock::lock(open(path)?, FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(LockState::Free(LockGuard { _held: held })),
        Err((_, Errno::EWOULDBLOCK)) => Ok(LockState::Held),
        Err((_, error)) => Err(error.into()),
    }
}

/// Takes the lock, waiting until it is free.
pub(super) fn lock(path: &Path) -> io::Result<LockGuard> {
    let mut file = open(path)?;
    loop {
        match Flock::lock(file, FlockArg::LockExclusive) {
            Ok(held) => return Ok(LockGuard { _held: held }),
            Err((unlocked, Errno::EINTR)) => file = unlocked,
            Err((_, error)) => return Err(error.into()),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
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
