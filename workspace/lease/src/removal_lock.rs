//! Removal locks of directories. A removal holds the removal lock of its directory, so that other callers wait for it
//! and do not take it for a run.
//!
//! Each directory has a removal lock beside its lease. A removal takes the lock of its directory alone and shares the locks
//! above it, from before it takes the lease until after it has released it. A run that finds its lease taken takes the same locks
//! while it tries again. So a run that has taken the locks and finds the lease taken has met another run, not a removal.
//!
//! The owner of a lease has the lock of its file before it writes its name into the file. Until then the file has the
//! name of the former owner. The name is used in messages alone.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::identity::FileIdentity;
use crate::lease_error::LeaseError;
use crate::lock;

/// Longest wait for a removal. Most removals take milliseconds. After a longer one, the start is tried again later.
const LONGEST: Duration = Duration::from_secs(10);
/// Pause between two attempts. The kernel has no wait for a file lock with a time limit (flock(2)).
const PAUSE: Duration = Duration::from_millis(5);

/// Returns a function that pauses between two attempts. The function returns false once [`LONGEST`] has passed.
pub(crate) fn timeout() -> impl FnMut() -> bool {
    let until = Instant::now() + LONGEST;
    move || {
        std::thread::sleep(PAUSE);
        Instant::now() < until
    }
}

/// The removal locks of a place and of the directories above it. They are released when this is dropped.
#[derive(Debug)]
pub(crate) struct RemovalLocks(Vec<File>);

impl RemovalLocks {
    /// Shares the locks above a place, from the top down so that two callers never wait for each other, and takes the
    /// lock of the place.
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
        // Closing the files is not enough: a child that another thread has forked has the descriptors, and with them
        // the locks, until it executes its program.
        for file in &self.0 {
            drop(file.unlock());
        }
    }
}

fn lock_path(leases_dir: &Path, place: FileIdentity) -> PathBuf {
    leases_dir.join(format!("{:x}-{:x}.gate", place.device, place.inode))
}
