//! Additional content of a backup's file: the bytes of attached files, and the details for human readers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::blobs::{BlobError, Blobs, Flaw, Lack};
use crate::model::id::Digest;
use crate::model::note::Attachment;
use crate::store::bundled::Copy;
use crate::store::open_error::OpenError;

/// Puts the files and the details into a copy. Returns the number of files, and the attachments whose bytes are not in
/// it.
pub(super) fn pack(copy: &Path, blobs: &Blobs, details: &str) -> Result<(u64, Vec<Lack>), OpenError> {
    let copy = Copy::open(copy)?;
    copy.begin(details)?;
    let read = |digest: &Digest| blobs.read(digest).map_err(|e| unkept(blobs, e));
    let packed =
        put_files(copy.digests()?, read, |digest, bytes| copy.put(digest, bytes), || copy.attachments())?;
    copy.close()?;
    Ok(packed)
}

/// Passes the bytes of each readable file to `put`. Returns the number of files, and the attachments without bytes.
pub(super) fn put_files<E>(
    digests: BTreeSet<Digest>,
    read: impl Fn(&Digest) -> Result<Result<Vec<u8>, Flaw>, E>,
    mut put: impl FnMut(&Digest, &[u8]) -> Result<(), E>,
    attachments: impl FnOnce() -> Result<Vec<Attachment>, E>,
) -> Result<(u64, Vec<Lack>), E> {
    let mut flaws = BTreeMap::new();
    let mut files = 0;
    for digest in digests {
        match read(&digest)? {
            Ok(bytes) => {
                put(&digest, &bytes)?;
                files += 1;
            }
            Err(flaw) => drop(flaws.insert(digest, flaw)),
        }
    }
    let lacks = if flaws.is_empty() { Vec::new() } else { lacking(attachments()?, &flaws) };
    Ok((files, lacks))
}

/// Stores the files of a copy, and removes the tables that no board has. Returns the details for human readers; none for
/// a copy without such tables. A file whose bytes do not match its digest is left out, so its attachment lacks its bytes
/// then.
pub(super) fn unpack(copy: &Path, blobs: &Blobs) -> Result<Option<String>, OpenError> {
    let copy = Copy::open(copy)?;
    if !copy.is_bundled()? {
        return Ok(None);
    }
    let details = copy.details()?;
    let _unswept = blobs.private().and_then(|_| blobs.unswept()).map_err(|e| unkept(blobs, e))?;
    for digest in copy.digests()? {
        if let Some(bytes) = copy.bytes(&digest)? {
            put_back(blobs, &digest, &bytes).map_err(|e| unkept(blobs, e))?;
        }
    }
    copy.strip()?;
    copy.close()?;
    Ok(details)
}

fn put_back(blobs: &Blobs, digest: &Digest, bytes: &[u8]) -> Result<(), BlobError> {
    if blobs.examine(digest).is_ok_and(|flaw| flaw.is_none()) {
        return Ok(());
    }
    let mut draft = blobs.draft()?;
    match draft.write(bytes) {
        Ok(()) if draft.digest() == *digest => draft.publish().map(drop),
        Ok(()) | Err(BlobError::TooLarge) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the attachments whose bytes have a flaw.
fn lacking(all: Vec<Attachment>, flaws: &BTreeMap<Digest, Flaw>) -> Vec<Lack> {
    all.into_iter()
        .filter_map(|file| flaws.get(&file.sha256).map(|flaw| Lack { flaw: *flaw, file }))
        .collect()
}

pub(super) fn unkept(blobs: &Blobs, error: BlobError) -> OpenError {
    match error {
        BlobError::Io { step, path, source } => OpenError::Io { step, path, source },
        other @ (BlobError::TooLarge | BlobError::Source(_)) => OpenError::Io {
            step: "keep a file in",
            path: blobs.directory().to_owned(),
            source: std::io::Error::other(other),
        },
    }
}
