//! The gates of places: shut while something there is removed, so that a removal is waited for and never taken for work.
//!
//! Each directory has a gate beside its lease. A removal shuts the gate of its place, and holds those above open for others
//! like it, from before it takes the lease until after it has given it back. Everybody else passes the same gates for the
//! moment in which it takes its lease. So a run that is through the gates and finds the lease taken has met a run, not a removal.
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

/// Waits a moment for a removal; false when that was long enough.
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
