//! Removal locks of directories. A removal lock is held while its directory is removed, so that others wait for the removal and do not
//! take it for a run.
//!
//! Each directory has a removal lock beside its lease. A removal takes the lock of its directory alone and shares the locks
//! above it, from before it takes the lease until after it has released it. A run takes the same locks only while it
//! takes its lease. So a run that has taken the locks and finds the lease taken has met another run, not a removal.
//!
//! The holder of a lease has its lock before it has written its name, so until then the file names the holder before
//! it. The name is for messages, and decides nothing.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::lease_error::LeaseError;
use crate::lock;
use crate::prepared::FileIdentity;

/// Time that a removal is waited for. Most take milliseconds; a longer one is met again later.
const LONGEST: Duration = Duration::from_secs(10);
/// The pause between two attempts. The kernel offers no wait for a file lock with a time limit.
const LOOK: Duration = Duration::from_millis(5);

/// Returns a function that waits a moment for a removal. It returns false once the longest wait is over.
pub(crate) fn timeout() -> impl FnMut() -> bool {
    let until = Instant::now() + LONGEST;
    move || {
        std::thread::sleep(LOOK);
        Instant::now() < until
    }
}

/// The removal locks of a place and of the directories above it. They are released when this is dropped.
#[derive(Debug)]
pub(crate) struct RemovalLocks(Vec<File>);

impl RemovalLocks {
    /// Shares the locks above a place, from the top down so that two never wait for each other, and takes its own.
    pub(crate) fn pass(
        leases_dir: &Path,
        workspace: &Path,
        place: FileIdentity,
        above: &[(&Path, FileIdentity)],
        mut wait: impl FnMut() -> bool,
    ) -> Result<Self, LeaseError> {
        let mut locks = Self(Vec::new());
        let mut take = |place, try_lock: fn(&File) -> Result<(), TryLockError>| {
            let path = lock_path(leases_dir, place);
            loop {
                match lock::take(&path, try_lock) {
                    Ok(file) => {
                        locks.0.push(file);
                        return Ok(());
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if !wait() {
                            return Err(LeaseError::Removing { workspace: workspace.to_owned() });
                        }
                    }
                    Err(source) => return Err(LeaseError::Lock { path, source }),
                }
            }
        };
        for (_, directory) in above.iter().rev() {
            take(*directory, File::try_lock_shared)?;
        }
        take(place, File::try_lock)?;
        Ok(locks)
    }
}

impl Drop for RemovalLocks {
    fn drop(&mut self) {
        // As for a lease: a child of another thread may have the descriptors until it execs.
        for file in &self.0 {
            drop(file.unlock());
        }
    }
}

fn lock_path(leases_dir: &Path, place: FileIdentity) -> PathBuf {
    leases_dir.join(format!("{:x}-{:x}.gate", place.device, place.inode))
}
