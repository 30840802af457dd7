//! Gates of directories. A gate is shut while its directory is removed, so that others wait for the removal and do not
//! take it for a run.
//!
//! Each directory has a gate beside its lease. A removal locks the gate of its directory alone and shares the gates
//! above it, from before it takes the lease until after it has released it. A run passes the same gates only while it
//! takes its lease. So a run that has passed the gates and finds the lease taken has met another run, not a removal.
//!
//! The holder of a lease has its lock before it has written its name, so until then the file names the holder before
//! it. The name is for messages, and decides nothing.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::lease_error::LeaseError;
use crate::lock;
use crate::prepared::Place;

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

/// The gates of a place and of the directories above it. They open when this is dropped.
#[derive(Debug)]
pub(crate) struct Gates(Vec<File>);

impl Gates {
    /// Passes the gates above a place, from the top down so that two never wait for each other, and shuts its own.
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
        // As for a lease: a child of another thread may have the descriptors until it execs.
        for file in &self.0 {
            drop(file.unlock());
        }
    }
}

fn gate_path(leases_dir: &Path, place: Place) -> PathBuf {
    leases_dir.join(format!("{:x}-{:x}.gate", place.device, place.inode))
}
