//! Writes a blob in three steps: a [`Draft`] takes the bytes, a [`Sealed`] is durable without its final name, a
//! [`Published`] has it. Dropping a draft or a sealed blob removes the file. The caller publishes in the transaction that
//! stores the row of the blob.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::{BlobError, Blobs, DRAFT};
use crate::model::id::Digest;
use crate::model::limits;

impl Blobs {
    /// Begins a blob: creates its draft file, whose lock keeps sweeps from removing it.
    pub fn draft(&self) -> Result<Draft, BlobError> {
        self.make_directory()?;
        let path = self.dir.join(format!("{DRAFT}{}", uuid::Uuid::new_v4().simple()));
        let fail = |step, source| BlobError::Io { step, path: path.clone(), source };
        // The shared lock excludes sweeps. Without it, a sweep between the creation and the lock of the file would remove the
        // draft as abandoned.
        let guard = self.share()?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(|source| fail("make", source))?;
        file.lock().map_err(|source| fail("lock", source))?;
        drop(guard);
        Ok(Draft { blobs: self.clone(), file, path, hash: Sha256::new(), size: 0 })
    }

    /// Stores all bytes of a reader as a blob.
    pub fn store(&self, source: &mut dyn Read) -> Result<Published, BlobError> {
        let mut draft = self.draft()?;
        let mut buffer = vec![0_u8; 64 * 1024];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => return draft.publish(),
                Ok(n) => draft.write(buffer.get(..n).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(BlobError::Source(error)),
            }
        }
    }
}

/// Blob that is being written. Dropping it removes it.
#[derive(Debug)]
pub struct Draft {
    blobs: Blobs,
    file: File,
    path: PathBuf,
    hash: Sha256,
    size: u64,
}

impl Draft {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`BlobError::TooLarge`] beyond the limit on an attachment; the bytes are then not written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let size = self.size + u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > limits::ATTACHMENT {
            return Err(BlobError::TooLarge);
        }
        self.file.write_all(bytes).map_err(|source| self.failed("write", source))?;
        self.hash.update(bytes);
        self.size = size;
        Ok(())
    }

    /// Returns the digest of the bytes so far.
    pub fn digest(&self) -> Digest {
        Digest::from_hash(self.hash.clone())
    }

    /// Makes the bytes durable, still without their final name. Dropping the result removes them.
    pub fn seal(self) -> Result<Sealed, BlobError> {
        self.file.sync_all().map_err(|source| self.failed("write", source))?;
        let guard = self.blobs.share()?;
        Ok(Sealed { digest: self.digest(), size: self.size, draft: self, guard })
    }

    /// Makes the blob durable and gives it its name. No sweep removes it until the returned value is dropped.
    pub fn publish(self) -> Result<Published, BlobError> {
        self.seal()?.publish()
    }

    fn failed(&self, step: &'static str, source: io::Error) -> BlobError {
        BlobError::Io { step, path: self.path.clone(), source }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The file of a published blob has been renamed, so nothing is removed.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Durable blob without its final name. It owns a shared lock that excludes sweeps, so that publishing never waits for
/// one.
#[derive(Debug)]
pub struct Sealed {
    /// Digest of the bytes, which becomes the name of the file.
    pub digest: Digest,
    /// Length in bytes.
    pub size: u64,
    draft: Draft,
    guard: File,
}

impl Sealed {
    /// Gives the blob its name. The caller does this in the transaction that accepts its row.
    pub fn publish(self) -> Result<Published, BlobError> {
        let Sealed { digest, size, draft, guard } = self;
        // An existing file of this name has the same bytes, or is damaged and replaced by a sound one.
        std::fs::rename(&draft.path, draft.blobs.path(&digest))
            .map_err(|source| draft.failed("name", source))?;
        // The guard is the open directory: syncing it makes the new name durable (fsync(2)).
        guard.sync_all().map_err(|source| draft.blobs.failed("write", source))?;
        Ok(Published { digest, size, _guard: guard })
    }
}

/// Durable blob under its name. The caller keeps this value until the row that refers to the blob is committed, because
/// its lock excludes sweeps.
#[derive(Debug)]
pub struct Published {
    pub digest: Digest,
    /// Length in bytes.
    pub size: u64,
    _guard: File,
}
