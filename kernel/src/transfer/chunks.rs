//! Writes the bytes of attached files as lines of an export, in chunks, so that no line is too long.
//!
//! ```text
//! {"file":{"sha256":"…","at":0,"hex":"…"}}
//! {"file":{"sha256":"…","at":524288,"hex":"…"}}
//! ```

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::blobs::{BlobError, Blobs, Draft};
use crate::model::error::Error;
use crate::model::id::Digest;
use crate::store::tx::Tx;

/// Number of bytes in a line, which has twice as many hexadecimal digits.
const CHUNK_BYTES: usize = 512 * 1024;

/// Part of a file, as a line of an export has it.
#[derive(Serialize, Deserialize)]
pub(super) struct Chunk {
    sha256: Digest,
    /// Number of bytes of the file before this chunk.
    at: u64,
    hex: String,
}

/// Returns the chunks of a file. An empty file has a single chunk.
pub(super) fn chunks<'a>(digest: &'a Digest, bytes: &'a [u8]) -> impl Iterator<Item = Chunk> + 'a {
    let count = bytes.len().div_ceil(CHUNK_BYTES).max(1);
    (0..count).map(move |number| {
        let at = number * CHUNK_BYTES;
        let chunk = bytes.get(at..bytes.len().min(at + CHUNK_BYTES)).unwrap_or_default();
        Chunk { sha256: digest.clone(), at: u64::try_from(at).unwrap_or(u64::MAX), hex: hex::encode(chunk) }
    })
}

/// Receiver of files in chunks. Each file must be complete before the next begins.
pub(super) struct Incoming<'a> {
    blobs: &'a Blobs,
    open: Option<(Digest, u64, Draft)>,
    stored: BTreeSet<Digest>,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(blobs: &'a Blobs) -> Self {
        Incoming { blobs, open: None, stored: BTreeSet::new() }
    }

    /// Takes the next chunk.
    pub(super) fn take(&mut self, tx: &Tx<'_>, chunk: &Chunk) -> Result<(), Refused> {
        if self.open.as_ref().is_some_and(|(digest, ..)| *digest != chunk.sha256) {
            self.end()?;
        }
        let (digest, length, mut draft) = match self.open.take() {
            Some(open) => open,
            None if !tx.is_attached(&chunk.sha256)? => {
                return Err(format!("no attachment has the content {}", chunk.sha256).into());
            }
            None if self.stored.contains(&chunk.sha256) => {
                return Err(format!("the file {} comes twice", chunk.sha256).into());
            }
            None => (chunk.sha256.clone(), 0, self.blobs.draft()?),
        };
        if chunk.at != length {
            return Err(format!("the file {digest} goes on at {} and not at {length}", chunk.at).into());
        }
        let bytes =
            hex::decode(&chunk.hex).map_err(|_| format!("the file {digest} has no hexadecimal digits"))?;
        draft.write(&bytes)?;
        self.open = Some((digest, length + u64::try_from(bytes.len()).unwrap_or(u64::MAX), draft));
        Ok(())
    }

    /// Ends the current file. Returns the number of files so far.
    pub(super) fn end(&mut self) -> Result<u64, Refused> {
        if let Some((digest, _, draft)) = self.open.take() {
            if draft.digest() != digest {
                return Err(format!("the bytes of the file {digest} are not those that were attached").into());
            }
            // The caller prevents sweeps for the whole import.
            drop(draft.publish()?);
            self.stored.insert(digest);
        }
        Ok(u64::try_from(self.stored.len()).unwrap_or(u64::MAX))
    }
}

/// Reason why a piece is refused.
pub(super) enum Refused {
    Line(String),
    /// The piece could not be stored, or the board could not be read.
    Failed(Error),
}

impl From<String> for Refused {
    fn from(what: String) -> Self {
        Refused::Line(what)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused::Failed(error)
    }
}

impl From<BlobError> for Refused {
    fn from(error: BlobError) -> Self {
        match error {
            BlobError::TooLarge => Refused::Line(error.to_string()),
            BlobError::Source(_) | BlobError::Io { .. } => Refused::Failed(error.into()),
        }
    }
}
