//! Messages of `confine` to the shim through a pipe, one JSON value per line, and their reader.
//!
//! The write end of the pipe is close-on-exec, so the end of file after `Confined` means that the command was executed.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use crate::rundir::{FailedStart, Step};

/// Limit on the bytes that are read. All reports are shorter; further output of a broken `confine` is ignored.
const MOST_BYTES: usize = 256 * 1024;
/// Line on the pipe.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Word {
    /// `confine` was loaded and has begun. Another line follows.
    Begun {
        /// Version of the following lines.
        begun: u32,
    },
    /// A step failed. No line follows.
    Failed(FailedStart),
    /// All restrictions are applied, and the command is executed next.
    Confined(Box<policies::Report>),
}

/// Outcome of the start of the command.
#[derive(Debug)]
pub(crate) enum Start {
    /// The command was executed.
    Executed(Box<policies::Report>),
    Failed(FailedStart),
    /// `confine` has begun, and has ended without another line.
    Silent,
    /// `confine` has never begun, because the host could not load it.
    NotLoaded,
}

/// The shim's end of the pipe.
#[derive(Debug)]
pub(crate) struct ReportPipe {
    pipe: Option<PipeReader>,
    bytes: Vec<u8>,
}

impl ReportPipe {
    /// Makes the reader of a pipe, which must be non-blocking.
    pub(crate) fn new(pipe: PipeReader) -> Self {
        Self { pipe: Some(pipe), bytes: Vec::new() }
    }

    /// Reads the available lines. Returns the outcome of the start, once, when the pipe is closed; none at any other time.
    pub(crate) fn read(&mut self) -> Option<Start> {
        let pipe = self.pipe.as_mut()?;
        let mut buffer = [0; 4096];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) if self.bytes.len() < MOST_BYTES => self.bytes.extend_from_slice(&buffer[..count]),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => break,
            }
        }
        self.pipe = None;
        Some(understand(&std::mem::take(&mut self.bytes)))
    }
}

impl ReportPipe {
    /// Returns the descriptor to wait for; none once the pipe is closed.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }
}

fn understand(bytes: &[u8]) -> Start {
    let mut start = Start::NotLoaded;
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(Word::Begun { .. }) => start = Start::Silent,
            Ok(Word::Confined(report)) => start = Start::Executed(report),
            Ok(Word::Failed(failure)) => return Start::Failed(failure),
            Err(error) => return Start::Failed(FailedStart::new(Step::Report, &error)),
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_after_the_report_is_what_counts() {
        let failed = FailedStart::new(Step::Exec, &io::Error::other("no such file"));
        let line = serde_json::to_vec(&Word::Failed(failed.clone())).unwrap();
        assert!(matches!(understand(&line), Start::Failed(failed_start) if failed_start == failed));
        assert!(matches!(understand(b""), Start::NotLoaded));
        let begun = serde_json::to_vec(&Word::Begun { begun: 1 }).unwrap();
        assert!(matches!(understand(&begun), Start::Silent));
        assert!(
            matches!(understand(b"{\"st"), Start::Failed(failed_start) if failed_start.step == Step::Report)
        );
    }
}
