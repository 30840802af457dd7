//! Bytes of attachments: files in a directory beside the board, each named after the SHA-256 digest of its content.
//!
//! A blob is durable before a row may name it. An acknowledged attachment therefore has its bytes, and a crash leaves at
//! most a blob without a row. A publisher holds the directory's lock, shared, until its row is committed. A
//! [sweep](Blobs::sweep) takes the lock exclusively, so it never sees a blob whose row is not committed yet.
//!
//! See decision 0012.

mod draft;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

pub use self::draft::{Draft, Published, Sealed};
use crate::model::error::{Error, StorageKind};
use crate::model::id::Digest;
use crate::model::limits;
use crate::model::note::Attachment;

/// Name of the directory beside the board's file.
const DIRECTORY: &str = "attachments";
/// Prefix of a file that is being written.
const DRAFT: &str = ".new-";

/// Error of a step on the files of attachments.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The file exceeds the limit of an attachment.
    #[error("it has more than {} bytes ({} MiB), the limit of an attachment", limits::ATTACHMENT, limits::ATTACHMENT >> 20)]
    TooLarge,
    /// The source could not be read.
    #[error("failed to read what is to be stored: {0}")]
    Source(#[source] io::Error),
    /// The file system failed.
    #[error("failed to {step} {}: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
}

impl From<BlobError> for Error {
    fn from(error: BlobError) -> Self {
        let kind = match &error {
            BlobError::TooLarge => {
                return Error::invalid(
                    "file",
                    error.to_string(),
                    "split or compress it, or keep it elsewhere",
                );
            }
            BlobError::Source(_) => StorageKind::Io,
            BlobError::Io { source, .. } => source.kind().into(),
        };
        Error::Storage { kind, step: "keep the attached file", source: Arc::new(error) }
    }
}

/// Blobs of one board.
#[derive(Clone, Debug)]
pub struct Blobs {
    dir: PathBuf,
}

/// Flaw of a blob that a row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The file does not exist.
    Missing,
    /// The bytes do not match the digest in the name.
    Altered,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::Missing => "its bytes are missing",
            Flaw::Altered => "its bytes are not those that were attached",
        })
    }
}

/// Attachment whose blob has a flaw.
#[derive(Clone, Debug, PartialEq)]
pub struct Lack {
    /// Row of the attachment.
    pub file: Attachment,
    pub flaw: Flaw,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Attachment { id, filename, task_id, .. } = &self.file;
        write!(f, "attachment {id} ({filename}) of {task_id}: {}", self.flaw)
    }
}

/// Guard that prevents sweeps until it is dropped. It holds the directory's lock, shared.
#[derive(Debug)]
pub struct Unswept {
    _guard: Option<File>,
}

/// Files that a sweep examines.
#[derive(Clone, Debug)]
pub enum SweepScope {
    /// All blobs, and abandoned drafts.
    All,
    /// The blobs with these digests.
    Only(BTreeSet<Digest>),
}

/// Treatment of files without a row by a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Files without a row are removed.
    Remove,
    /// Files without a row are only reported.
    Look,
}

/// Result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Files without a row, each with its length in bytes.
    pub files: Vec<(PathBuf, u64)>,
}

impl Blobs {
    /// Returns the blobs of the board at `path` without accessing any file. The directory is created with the first
    /// blob.
    pub fn of_board(path: &Path) -> Self {
        Self { dir: path.with_file_name(DIRECTORY) }
    }

    /// Returns the directory of the files, in the directory of the board.
    pub fn directory(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of a blob.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.dir.join(digest.as_str())
    }

    /// Opens a blob for reading. A symbolic link is refused.
    pub fn open(&self, digest: &Digest) -> Result<File, BlobError> {
        let path = self.path(digest);
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC).bits();
        let flags = i32::try_from(flags).unwrap_or_default();
        let open = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        open.map_err(|source| BlobError::Io { step: "open", path, source })
    }

    /// Returns the directory, and creates it if needed. Only its owner may access it.
    pub fn private(&self) -> Result<&Path, BlobError> {
        self.make_directory()?;
        Ok(&self.dir)
    }

    /// Reads a blob and compares the digest of its content with its name. Returns none for an intact blob.
    pub fn examine(&self, digest: &Digest) -> Result<Option<Flaw>, BlobError> {
        let Some(mut file) = existing(self.open(digest))? else { return Ok(Some(Flaw::Missing)) };
        let mut hash = Sha256::new();
        let mut buffer = vec![0_u8; 64 * 1024];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => hash.update(buffer.get(..n).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.unread(digest, source)),
            }
        }
        Ok((Digest::from_hash(hash) != *digest).then_some(Flaw::Altered))
    }

    /// Reads a whole blob. The inner error is its flaw, if the blob is missing or its content does not match its name.
    pub fn read(&self, digest: &Digest) -> Result<Result<Vec<u8>, Flaw>, BlobError> {
        let Some(file) = existing(self.open(digest))? else { return Ok(Err(Flaw::Missing)) };
        let mut bytes = Vec::new();
        // A longer file exceeds the limit of an attachment, so its digest cannot match and the rest is not read.
        let read = file.take(limits::ATTACHMENT + 1).read_to_end(&mut bytes);
        read.map_err(|source| self.unread(digest, source))?;
        let is_whole = Digest::from_hash(Sha256::new_with_prefix(&bytes)) == *digest;
        Ok(if is_whole { Ok(bytes) } else { Err(Flaw::Altered) })
    }

    /// Prevents sweeps while many blobs are read or stored, and waits for a sweep in progress. Without a directory, no
    /// blob exists that a sweep could remove.
    pub fn unswept(&self) -> Result<Unswept, BlobError> {
        Ok(Unswept { _guard: existing(self.share())? })
    }

    /// Finds the blobs that no row names, and removes them if `sweep` says so. `named` returns the digests of the rows.
    /// It is called under the exclusive lock, when no publisher is active, so that no row can appear afterwards.
    pub fn sweep<E: From<BlobError>>(
        &self,
        scope: &SweepScope,
        sweep: Sweep,
        named: impl FnOnce() -> Result<BTreeSet<Digest>, E>,
    ) -> Result<Swept, E> {
        let dir = match File::open(&self.dir) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Swept::default()),
            Err(source) => return Err(self.failed("open", source).into()),
        };
        dir.lock().map_err(|source| self.failed("lock", source))?;
        let named = named()?;
        let mut swept = Swept::default();
        for path in self.candidates(scope)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let unwanted = match name.parse::<Digest>() {
                Ok(digest) => !named.contains(&digest),
                Err(_) => name.starts_with(DRAFT) && is_abandoned(&path),
            };
            // Other files in the directory do not belong to the board.
            let Some(meta) = unwanted.then(|| path.symlink_metadata().ok()).flatten() else { continue };
            if sweep == Sweep::Remove {
                let fail = |source| BlobError::Io { step: "remove", path: path.clone(), source };
                std::fs::remove_file(&path).map_err(fail)?;
            }
            swept.files.push((path, meta.len()));
        }
        Ok(swept)
    }

    fn candidates(&self, scope: &SweepScope) -> Result<Vec<PathBuf>, BlobError> {
        match scope {
            SweepScope::Only(digests) => Ok(digests.iter().map(|digest| self.path(digest)).collect()),
            SweepScope::All => {
                let entries = std::fs::read_dir(&self.dir).map_err(|source| self.failed("list", source))?;
                let mut paths = Vec::new();
                for entry in entries {
                    paths.push(entry.map_err(|source| self.failed("list", source))?.path());
                }
                paths.sort();
                Ok(paths)
            }
        }
    }

    fn share(&self) -> Result<File, BlobError> {
        let dir = File::open(&self.dir).map_err(|source| self.failed("open", source))?;
        dir.lock_shared().map_err(|source| self.failed("lock", source))?;
        Ok(dir)
    }

    fn make_directory(&self) -> Result<(), BlobError> {
        match DirBuilder::new().mode(0o700).create(&self.dir) {
            Ok(()) => {
                let parent = self.dir.parent().unwrap_or(&self.dir);
                File::open(parent)
                    .and_then(|parent| parent.sync_all())
                    .map_err(|source| self.failed("make", source))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(source) => Err(self.failed("make", source)),
        }
    }

    fn unread(&self, digest: &Digest, source: io::Error) -> BlobError {
        BlobError::Io { step: "read", path: self.path(digest), source }
    }

    fn failed(&self, step: &'static str, source: io::Error) -> BlobError {
        BlobError::Io { step, path: self.dir.clone(), source }
    }
}

/// Returns the opened file; none if it does not exist.
fn existing(opened: Result<File, BlobError>) -> Result<Option<File>, BlobError> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(BlobError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if a draft has no living writer: a writer holds the lock of its draft as long as it lives.
fn is_abandoned(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn bench() -> (tempfile::TempDir, Blobs) {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::of_board(&dir.path().join("board.db"));
        (dir, blobs)
    }

    fn names(blobs: &Blobs) -> Vec<String> {
        let entries = std::fs::read_dir(blobs.directory()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_blob_is_named_by_its_content_and_nobody_else_may_read_it() {
        let (_dir, blobs) = bench();
        let blob = blobs.store(&mut &b"abc"[..]).unwrap();
        // FIPS 180-2, appendix B.1.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((blob.digest.as_str(), blob.size), (known, 3));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(blobs.directory()), mode(&blobs.path(&blob.digest))), (0o700, 0o600));
        let again = blobs.store(&mut &b"abc"[..]).unwrap();
        assert_eq!(again.digest, blob.digest);
        assert_eq!(names(&blobs), [known]);
    }

    #[test]
    fn a_blob_has_up_to_25_mib_and_not_a_byte_more() {
        let (_dir, blobs) = bench();
        assert_eq!(limits::ATTACHMENT, 25 << 20);
        let whole = blobs.store(&mut io::repeat(7).take(limits::ATTACHMENT)).unwrap();
        assert_eq!(whole.size, limits::ATTACHMENT);
        let error = blobs.store(&mut io::repeat(7).take(limits::ATTACHMENT + 1)).unwrap_err();
        assert!(matches!(error, BlobError::TooLarge), "{error}");
        assert_eq!(names(&blobs).len(), 1, "the draft is gone");
    }

    #[test]
    fn what_is_sealed_has_no_name_until_it_is_published_and_is_gone_if_it_never_is() {
        let (_dir, blobs) = bench();
        let seal = || {
            let mut draft = blobs.draft().unwrap();
            draft.write(b"abc").unwrap();
            draft.seal().unwrap()
        };
        let refused = seal();
        assert!(!blobs.path(&refused.digest).exists());
        drop(refused);
        assert!(names(&blobs).is_empty());
        let accepted = seal().publish().unwrap();
        assert_eq!(names(&blobs), [accepted.digest.as_str()]);
    }

    #[test]
    fn a_sweep_removes_what_no_row_names_and_leaves_what_one_does() {
        let (_dir, blobs) = bench();
        let kept = blobs.store(&mut &b"kept"[..]).unwrap().digest;
        let lost = blobs.store(&mut &b"lost"[..]).unwrap().digest;
        std::fs::write(blobs.directory().join("README"), "a person's").unwrap();
        let named = || Ok::<_, BlobError>(BTreeSet::from([kept.clone()]));
        let seen = blobs.sweep(&SweepScope::All, Sweep::Look, named).unwrap();
        assert_eq!(seen.files, [(blobs.path(&lost), 4)]);
        assert!(blobs.path(&lost).exists());
        assert_eq!(blobs.sweep(&SweepScope::All, Sweep::Remove, named).unwrap(), seen);
        assert!(blobs.path(&kept).exists() && !blobs.path(&lost).exists());
        assert!(blobs.directory().join("README").exists());
    }

    #[test]
    fn a_sweep_and_a_blob_whose_row_is_on_its_way_exclude_each_other() {
        let (_dir, blobs) = bench();
        let blob = blobs.store(&mut &b"new"[..]).unwrap();
        let dir = || File::open(blobs.directory()).unwrap();
        assert!(dir().try_lock().is_err(), "a sweep would have to wait");
        let digest = blob.digest.clone();
        drop(blob);
        assert!(dir().try_lock().is_ok());
        let named = || {
            assert!(dir().try_lock_shared().is_err(), "nothing is published while rows are read");
            Ok::<_, BlobError>(BTreeSet::from([digest.clone()]))
        };
        assert_eq!(blobs.sweep(&SweepScope::All, Sweep::Remove, named).unwrap(), Swept::default());
    }

    #[test]
    fn a_sweep_takes_dead_drafts_and_spares_living_ones() {
        let (_dir, blobs) = bench();
        let mut living = blobs.draft().unwrap();
        living.write(b"half").unwrap();
        let dead = blobs.directory().join(".new-dead");
        std::fs::write(&dead, "half").unwrap();
        let swept =
            blobs.sweep(&SweepScope::All, Sweep::Remove, || Ok::<_, BlobError>(BTreeSet::new())).unwrap();
        assert_eq!(swept.files, [(dead, 4)]);
        assert_eq!(living.publish().unwrap().size, 4);
    }

    #[test]
    fn a_spoiled_blob_is_known_and_storing_it_again_heals_it() {
        let (_dir, blobs) = bench();
        let digest = blobs.store(&mut &b"good"[..]).unwrap().digest;
        assert_eq!(blobs.examine(&digest).unwrap(), None);
        std::fs::write(blobs.path(&digest), "evil").unwrap();
        assert_eq!(blobs.examine(&digest).unwrap(), Some(Flaw::Altered));
        drop(blobs.store(&mut &b"good"[..]).unwrap());
        assert_eq!(blobs.examine(&digest).unwrap(), None);
        std::fs::remove_file(blobs.path(&digest)).unwrap();
        assert_eq!(blobs.examine(&digest).unwrap(), Some(Flaw::Missing));
    }
}
