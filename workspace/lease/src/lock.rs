//! Taking a lock file so that the name still means the file that was locked.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;

/// Opens (or makes) the file at `path` and locks it; the kernel drops the lock with the last descriptor.
///
/// A lock file is removed only by its owner, so a lock taken on a removed file is taken again on its successor.
/// The descriptor is close-on-exec: a worker must not inherit it, or the lock would outlive the run.
pub fn take(path: &Path, try_lock: fn(&File) -> Result<(), TryLockError>) -> std::io::Result<File> {
    loop {
        let file = fs_err::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed())
            .open(path)?
            .into_parts()
            .0;
        try_lock(&file)?;
        // The owner may have removed the file between the open and the lock. Then the name means another file.
        let held = file.metadata()?;
        match fs_err::symlink_metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => return Ok(file),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// Locks a file as soon as no other process has it locked.
pub fn wait(file: &File) -> Result<(), TryLockError> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            done => return done.map_err(TryLockError::Error),
        }
    }
}
