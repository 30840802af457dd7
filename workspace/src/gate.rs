//! Gates of directories. A gate is shut during the removal of its directory, so that other callers wait for the removal and
//! do not take it for a run.
//!
//! Each directory has a gate, which is a lock file beside its lease. A removal takes the exclusive lock on the gate of its
//! directory and shared locks on the gates above it, from before it takes the lease until after it has released the lease. A
//! run takes the same locks only while it takes its lease. So if a run has the locks and finds the lease taken, another run
//! has the lease, and not a removal.
//!
//! The owner of a lease has the lock of its file before it has written its name into the file. Until then the file names the
//! former owner. The name is used in messages alone.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::lease_error::LeaseError;
use crate::lock;
use crate::prepared::Place;

/// Longest wait for a removal. Most removals take milliseconds. After a longer one, the start is tried again later.
const LONGEST: Duration = Duration::from_secs(10);
/// Pause between two attempts. The kernel has no wait for a file lock with a time limit (flock(2)).
const LOOK: Duration = Duration::from_millis(5);

/// Returns a function that pauses between two attempts. The function returns false once [`LONGEST`] has passed.
pub(crate) fn timeout() -> impl FnMut() -> bool {
    let until = Instant::now() + LONGEST;
    move || {
        std::thread::sleep(LOOK);
        Instant::now() < until
    }
}

/// Locks on the gates of a directory and of the directories above it. Dropping the value releases them.
#[derive(Debug)]
pub(crate) struct Gates(Vec<File>);

impl Gates {
    /// Takes shared locks on the gates above a directory, then the exclusive lock on its own gate. All callers go from the
    /// top down, so that no two wait for each other.
    pub(crate) fn pass(
        leases_dir: &Path,
        workspace: &Path,
        place: Place,
        above: &[(&Path, Place)],
        mut wait: impl FnMut() -> bool,
    ) -> Result<Self, LeaseError> {
        let mut gates = Self(Vec::new());
        let mut take = |place, try_lock: fn(&File) -> Result<(), TryLockError>| {
            let path = gate_path(leases_dir, place);
            loop {
                match lock::take(&path, try_lock) {
                    Ok(file) => {
                        gates.0.push(file);
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
        Ok(gates)
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        // The close of the files is not enough: until it executes its program, a child that another thread has forked has
        // the descriptors too, and with them the locks.
        for file in &self.0 {
            drop(file.unlock());
        }
    }
}

fn gate_path(leases_dir: &Path, place: Place) -> PathBuf {
    leases_dir.join(format!("{:x}-{:x}.gate", place.device, place.inode))
}
