//! `exit`: a file whose space is reserved before the worker starts. The shim writes the exit record to it when no process of
//! the run is left.
//!
//! The file is one line, then the record as JSON:
//!
//! ```text
//! <length of the JSON, 8 hex digits> <SHA-256 of the JSON, 64 hex digits>\n{…}\n
//! ```
//! Until then the file is all zeros. So a full disk cannot prevent the record, and the checksum reveals an incomplete one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use sha2::{Digest, Sha256};

use super::ExitRecord;

/// Space for one record, in bytes: two tails of 4096 bytes and the text of an error, where JSON may escape each byte as
/// six.
const SLOT_BYTES: usize = 64 * 1024;
/// Length of the first line, in bytes.
const LINE_BYTES: usize = 8 + 1 + 64 + 1;

/// Reasons why a record could not be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The record cannot be represented in JSON.
    #[error("write the exit record as JSON")]
    Encode(#[source] serde_json::Error),
    /// The file did not take all of the record.
    #[error("write the exit record")]
    Write(#[source] io::Error),
    /// The record may not be durable.
    #[error("sync the exit record")]
    Sync(#[source] io::Error),
}

/// Open file with reserved space for one exit record.
#[derive(Debug)]
pub(crate) struct ExitSlot {
    file: File,
}

impl ExitSlot {
    /// Opens the file at `path`, empties it and reserves its space. On a file system without fallocate(2), zeros are written.
    pub(crate) fn reserve(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, SLOT_BYTES as u64) {
            Ok(()) => {}
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                (&file).write_all(&vec![0; SLOT_BYTES])?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Self { file })
    }

    /// Writes the record and makes it durable. May be called again after a failure.
    pub(crate) fn store(&self, record: &ExitRecord) -> Result<(), StoreError> {
        let bytes = encode(record).map_err(StoreError::Encode)?;
        self.file.write_all_at(&bytes, 0).map_err(StoreError::Write)?;
        // The rest of the reserved space is freed. A reader stops at the length in the first line, so a failure here is
        // harmless.
        self.file.set_len(bytes.len() as u64).ok();
        fdatasync(&self.file).map_err(|error| StoreError::Sync(error.into()))
    }
}

/// Decodes the record from the file's bytes; none if it is missing, torn or altered.
pub(super) fn decode(bytes: &[u8]) -> Option<ExitRecord> {
    let (line, rest) = bytes.split_at_checked(LINE_BYTES)?;
    let line = std::str::from_utf8(line).ok()?;
    let (length, sum) = line.strip_suffix('\n')?.split_once(' ')?;
    let json = rest.get(..usize::from_str_radix(length, 16).ok()?)?;
    if sum != checksum(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

pub(super) fn encode(record: &ExitRecord) -> Result<Vec<u8>, serde_json::Error> {
    let mut record = record.clone();
    loop {
        let json = serde_json::to_vec(&record)?;
        let smallest = record.stdout_tail.is_empty() && record.stderr_tail.is_empty();
        if json.len() + LINE_BYTES < SLOT_BYTES || smallest {
            let mut bytes = format!("{:08x} {}\n", json.len(), checksum(&json)).into_bytes();
            bytes.extend_from_slice(&json);
            bytes.push(b'\n');
            return Ok(bytes);
        }
        // The record is too long only if JSON escapes most of a tail. Half of such a tail is as useful as the whole.
        record.stdout_tail = last_half(&record.stdout_tail);
        record.stderr_tail = last_half(&record.stderr_tail);
    }
}

fn last_half(text: &str) -> String {
    text.chars().skip(text.chars().count().div_ceil(2)).collect()
}

pub(super) fn checksum(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::{Cause, StopReason};
    use crate::rundir::{Concern, FailedStart, Step};

    fn record(stdout_tail: &str) -> ExitRecord {
        ExitRecord {
            code: Some(3),
            stdout_tail: stdout_tail.to_owned(),
            started_at_us: Some(1),
            ended_at_wall_us: Some(3),
            lingered: 1,
            ..ExitRecord::with_cause(Cause::Stopped { reason: StopReason::Verdict }, 2)
        }
    }

    #[test]
    fn a_stored_record_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("exit");
        let slot = ExitSlot::reserve(&path).unwrap();
        assert_eq!(decode(&std::fs::read(&path).unwrap()), None);
        slot.store(&record("done\n")).unwrap();
        assert_eq!(decode(&std::fs::read(&path).unwrap()), Some(record("done\n")));
    }

    #[test]
    fn every_torn_or_changed_record_is_no_record() {
        let whole = encode(&record("done")).unwrap();
        let json_end = whole.len() - 1;
        for length in 0..json_end {
            assert_eq!(decode(&whole[..length]), None, "cut at {length}");
        }
        for at in LINE_BYTES..json_end {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert_eq!(decode(&changed), None, "changed at {at}");
        }
        assert_eq!(decode(&vec![0; SLOT_BYTES]), None);
    }

    #[test]
    fn a_record_that_a_later_release_wrote_can_be_read() {
        let json = br#"{"version":9,"cause":"exited","code":0,"stdout_tail":"","stderr_tail":"","ended_at_us":1,
            "usage":{"user_us":1,"system_us":1,"max_rss_kib":1,"novelty":1},"survivors":0,"lingered":0,"novelty":1}"#;
        let mut bytes = format!("{:08x} {}\n", json.len(), checksum(json)).into_bytes();
        bytes.extend_from_slice(json);
        assert_eq!(decode(&bytes).unwrap().cause, Cause::Exited);
    }

    #[test]
    fn the_worst_tail_still_fits_its_slot() {
        let mut worst = record(&"\u{1}".repeat(4096));
        worst.stderr_tail = "\u{1}".repeat(4096);
        worst.cause = Cause::SpawnFailed(FailedStart {
            step: Step::Exec,
            error: "\u{1}".repeat(4096),
            errno: None,
            concern: Concern::Lane,
        });
        let bytes = encode(&worst).unwrap();
        assert!(bytes.len() <= SLOT_BYTES);
        assert!(decode(&bytes).unwrap().stdout_tail.len() >= 1024);
    }
}
