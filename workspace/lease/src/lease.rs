//! The lease on a directory: a file lock of the process that runs the work. Across all boards, one run at a time has
//! it.
//!
//! Two workers in one directory would undo each other's work. Admission compares paths. The lease compares devices
//! and inodes, so it also covers a directory that has two names or is used by two boards.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::identity::FileIdentity;
use crate::lease_error::{LeaseError, LeaseHolder};
use crate::lock;
use crate::removal_lock::{self, RemovalLocks};

/// Returns the lease file of a directory.
pub(crate) fn lease_path(leases_dir: &Path, place: FileIdentity) -> PathBuf {
    leases_dir.join(format!("{:x}-{:x}.lease", place.device, place.inode))
}

/// Owned lease. It is released when this is dropped, or when the process ends.
#[derive(Debug)]
pub struct Lease {
    locked: File,
    path: PathBuf,
    /// Shared locks on the leases of the directories above, because a lease on one of them covers this directory too.
    above: Vec<File>,
    /// Removal locks of a removal, so that other callers do not take it for a run. They are dropped after the locks.
    _removal_locks: Option<RemovalLocks>,
}

impl Lease {
    /// Takes the lease on a directory. Waits for a removal for a limited time, and not for a run that works there.
    ///
    /// `leases_dir` must exist and belong to the daemon; the lease file in it is made if it is missing. Each process
    /// takes its own lease: a shim calls this itself, and its lease then outlives the daemon. The lease is only on the
    /// directory with that identity; if it was removed or replaced meanwhile, the error is [`LeaseError::Gone`].
    pub fn acquire(
        leases_dir: &Path,
        workspace: &Path,
        place: FileIdentity,
        holder: &LeaseHolder,
    ) -> Result<Self, LeaseError> {
        Self::acquire_within(leases_dir, workspace, place, holder, removal_lock::timeout())
    }

    fn acquire_within(
        leases_dir: &Path,
        workspace: &Path,
        place: FileIdentity,
        holder: &LeaseHolder,
        wait: impl FnMut() -> bool,
    ) -> Result<Self, LeaseError> {
        let directories = workspace.ancestors().skip(1);
        let above: Vec<_> =
            directories.map(|path| Ok((path, identity(path, workspace)?))).collect::<Result<_, _>>()?;
        if let LeaseHolder::Run { .. } = holder
            && let Some(lease) = Self::acquire_free(leases_dir, workspace, place, &above, holder)?
        {
            return Ok(lease);
        }
        let removal_locks = RemovalLocks::pass(leases_dir, workspace, place, &above, wait)?;
        // The identity is checked under the removal locks, because a removal that held them may have removed the
        // directory.
        if identity(workspace, workspace)? != place {
            return Err(LeaseError::Gone { workspace: workspace.to_owned() });
        }
        let path = lease_path(leases_dir, place);
        let above = share_above(leases_dir, workspace, &above)?;
        let mut locked = lock::take(&path, File::try_lock).map_err(|source| {
            if source.kind() != io::ErrorKind::WouldBlock {
                return LeaseError::Lock { path: path.clone(), source };
            }
            // Runs inside of the directory share its lease, and their names stand in their own lease files.
            match lock::take(&path, File::try_lock_shared) {
                Ok(_) => LeaseError::HeldInside { workspace: workspace.to_owned() },
                Err(_) => LeaseError::Held { workspace: workspace.to_owned(), holder: read_holder(&path) },
            }
        })?;
        write_holder(&mut locked, holder)
            .map_err(|source| LeaseError::Write { path: path.clone(), source })?;
        let locks = match holder {
            LeaseHolder::Run { .. } => None,
            LeaseHolder::Removal { .. } => Some(removal_locks),
        };
        Ok(Self { locked, path, above, _removal_locks: locks })
    }

    /// Takes a free lease without the removal locks, because a removal has the lease until it has removed the directory.
    /// Returns none if a run or a removal has the lease; the removal locks then tell which.
    fn acquire_free(
        leases_dir: &Path,
        workspace: &Path,
        place: FileIdentity,
        above: &[(&Path, FileIdentity)],
        holder: &LeaseHolder,
    ) -> Result<Option<Self>, LeaseError> {
        let path = lease_path(leases_dir, place);
        let above = match share_above(leases_dir, workspace, above) {
            Ok(above) => above,
            Err(LeaseError::HeldAbove { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let locked = match lock::take(&path, File::try_lock) {
            Ok(locked) => locked,
            Err(source) => {
                for file in &above {
                    drop(file.unlock());
                }
                let is_taken = source.kind() == io::ErrorKind::WouldBlock;
                return if is_taken { Ok(None) } else { Err(LeaseError::Lock { path, source }) };
            }
        };
        let mut lease = Self { locked, path, above, _removal_locks: None };
        // Checked under the lease: before it was free, a removal may have taken the directory away.
        if identity(workspace, workspace)? != place {
            return Err(LeaseError::Gone { workspace: workspace.to_owned() });
        }
        write_holder(&mut lease.locked, holder)
            .map_err(|source| LeaseError::Write { path: lease.path.clone(), source })?;
        Ok(Some(lease))
    }

    /// Returns the lease file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread has forked has the descriptor until it execs. A failure is
        // ignored, because the file is closed next.
        drop(self.locked.unlock());
        for file in &self.above {
            drop(file.unlock());
        }
    }
}

/// Returns the identity of a directory on the way to a workspace.
fn identity(path: &Path, workspace: &Path) -> Result<FileIdentity, LeaseError> {
    match rustix::fs::stat(path) {
        Ok(stat) => Ok(FileIdentity::from_stat(&stat)),
        Err(Errno::NOENT) => Err(LeaseError::Gone { workspace: workspace.to_owned() }),
        Err(errno) => Err(LeaseError::Lock { path: path.to_owned(), source: errno.into() }),
    }
}

/// Shares the lease on each directory above a workspace, so that no other run takes one of them as a whole.
fn share_above(
    leases_dir: &Path,
    workspace: &Path,
    directories: &[(&Path, FileIdentity)],
) -> Result<Vec<File>, LeaseError> {
    let mut above = Vec::new();
    for (directory, place) in directories {
        let path = lease_path(leases_dir, *place);
        above.push(lock::take(&path, File::try_lock_shared).map_err(|source| {
            if source.kind() == io::ErrorKind::WouldBlock {
                LeaseError::HeldAbove {
                    workspace: workspace.to_owned(),
                    above: directory.to_path_buf(),
                    holder: read_holder(&path),
                }
            } else {
                LeaseError::Lock { path: path.clone(), source }
            }
        })?);
    }
    Ok(above)
}

/// Returns the owner of the lease on a directory; none if it is free, or if the owner has not written its name yet.
fn read_holder(path: &Path) -> Option<LeaseHolder> {
    // A record that its owner is just writing may be incomplete and does not parse. The refusal then has no name.
    serde_json::from_slice(&fs_err::read(path).ok()?).ok()
}

fn write_holder(file: &mut File, holder: &LeaseHolder) -> io::Result<()> {
    let text = serde_json::to_vec(holder)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&text)
}

/// Removes the files of free leases and removal locks, and returns their number. The files are small, so it is enough
/// that `gc` calls this.
pub fn sweep(leases_dir: &Path) -> Result<usize, LeaseError> {
    let list = |source| LeaseError::List { path: leases_dir.to_owned(), source };
    let mut removed = 0;
    for entry in fs_err::read_dir(leases_dir).map_err(list)? {
        let path = entry.map_err(list)?.path();
        if path.extension().is_none_or(|extension| extension != "lease" && extension != "gate") {
            continue;
        }
        match lock::take(&path, File::try_lock) {
            Ok(locked) => {
                fs_err::remove_file(&path)
                    .map_err(|source| LeaseError::Remove { path: path.clone(), source })?;
                drop(locked);
                removed += 1;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(source) => return Err(LeaseError::Lock { path, source }),
        }
    }
    Ok(removed)
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
