//! File that one process at a time locks. The kernel frees the lock when that process ends, for whatever reason.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A locked file. The lock is freed when this is dropped.
///
/// The descriptor is close-on-exec, because a worker that inherited the lock would keep it.
#[derive(Debug)]
pub struct LockFile(File);

impl LockFile {
    /// Locks a file, and creates it if it is missing. None if another process has locked it.
    pub fn try_lock(path: &Path) -> io::Result<Option<Self>> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Locks a file, and creates it if it is missing. Waits until no other process has locked it.
    pub fn lock(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        loop {
            match file.lock() {
                Ok(()) => return Ok(Self(file)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the locked file. Its content describes the owner of the lock.
    pub fn file(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // A process that is being started may have the descriptor for a moment longer, and would keep the lock for that
        // time.
        drop(self.0.unlock());
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_file_is_seen_and_one_that_was_dropped_is_free() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = LockFile::lock(&path).unwrap();
        assert!(LockFile::try_lock(&path).unwrap().is_none());
        drop(held);
        assert!(LockFile::try_lock(&path).unwrap().is_some());
    }
}
