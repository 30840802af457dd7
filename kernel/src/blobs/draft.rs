//! Writing a blob: a draft that is gone when it is dropped, sealed when it is durable, and published when its row is.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::{BlobError, Blobs, DRAFT};
use crate::model::id::Digest;
use crate::model::limits;

impl Blobs {
    /// Begins a new blob.
    pub fn draft(&self) -> Result<Draft, BlobError> {
        self.make_directory()?;
        let path = self.dir.join(format!("{DRAFT}{}", uuid::Uuid::new_v4().simple()));
        let fail = |step, source| BlobError::Io { step, path: path.clone(), source };
        // A sweep that ran between the making and the locking would take the draft for a dead one.
        let guard = self.share()?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(|source| fail("make", source))?;
        file.lock().map_err(|source| fail("lock", source))?;
        drop(guard);
        Ok(Draft { blobs: self.clone(), file, path, hash: Sha256::new(), size: 0 })
    }

    /// Stores all that a reader gives.
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

/// A blob that is being written. It is gone when it is dropped.
#[derive(Debug)]
pub struct Draft {
    blobs: Blobs,
    file: File,
    path: PathBuf,
    hash: Sha256,
    size: u64,
}

impl Draft {
    /// Adds bytes.
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

    /// Returns the name of what has been written so far.
    pub fn digest(&self) -> Digest {
        Digest::of(self.hash.clone())
    }

    /// Makes what was written durable. Nothing has its name yet; dropped, it is gone.
    pub fn seal(self) -> Result<Sealed, BlobError> {
        self.file.sync_all().map_err(|source| self.failed("write", source))?;
        let guard = self.blobs.share()?;
        Ok(Sealed { digest: self.digest(), size: self.size, draft: self, guard })
    }

    /// Makes the blob durable and gives it its name. It is safe from sweeps until the return value is dropped.
    pub fn publish(self) -> Result<Published, BlobError> {
        self.seal()?.publish()
    }

    fn failed(&self, step: &'static str, source: io::Error) -> BlobError {
        BlobError::Io { step, path: self.path.clone(), source }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Once it is published, nothing has this name any more.
        drop(std::fs::remove_file(&self.path));
    }
}

/// A blob that is durable and has no name yet. As long as it is there no sweep begins, so it is published without a wait.
#[derive(Debug)]
pub struct Sealed {
    /// The name that it will have.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
    draft: Draft,
    guard: File,
}

impl Sealed {
    /// Gives the blob its name: to be called when its row is accepted, in the row's transaction.
    pub fn publish(self) -> Result<Published, BlobError> {
        let Sealed { digest, size, draft, guard } = self;
        // A blob of the same name has the same bytes, unless they were spoiled: then they are whole again now.
        std::fs::rename(&draft.path, draft.blobs.path(&digest))
            .map_err(|source| draft.failed("name", source))?;
        guard.sync_all().map_err(|source| draft.blobs.failed("write", source))?;
        Ok(Published { digest, size, _guard: guard })
    }
}

/// A blob that is durable. Keep it until the row that names it is committed.
#[derive(Debug)]
pub struct Published {
    /// Its name.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
    _guard: File,
}
