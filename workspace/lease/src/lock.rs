//! Takes a lock file so that its name still belongs to the locked file.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;

/// Opens or makes the file at `path` and locks it. The kernel drops the lock with the last descriptor.
///
/// Only its owner removes a lock file, so after a lock on a removed file its successor is tried. The descriptor is
/// close-on-exec, because a worker that inherited it would keep the lock after the end of the run.
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
        // The owner may have removed the file between the open and the lock. The name then belongs to another file.
        let held = file.metadata()?;
        match fs_err::symlink_metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => return Ok(file),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// Locks a file. Waits until no other process has locked it.
pub fn wait(file: &File) -> Result<(), TryLockError> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            done => return done.map_err(TryLockError::Error),
        }
    }
}
