//! Copies the output of the worker from its two pipes into the log, and its standard output into a file of its own as
//! well. At a terminal, all output is standard output.
//!
//! Each pipe keeps its own order. Between the two, the log has the order in which the shim reads them: after a wake-up
//! it takes up to 16 KiB of standard output, then as much of standard error. So output to one pipe and, after the shim
//! has slept again, to the other is logged in the order of writing. Output to both pipes at the same time may not be.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::log::CappedLog;
use crate::rundir::{RunDir, ShimSpec, StdoutRecord};
use crate::tail::Tail;

/// Bytes copied of one stream before the loop turns to its other events.
const COPY_BYTES: usize = 16 * 1024;
/// Limit on the bytes left in a pipe that no process of the run has open any more: the largest pipe that an ordinary
/// user can make.
const LAST_BYTES: usize = 1024 * 1024;

/// Files that receive the output.
#[derive(Debug)]
pub(crate) struct Files {
    log: CappedLog,
    stdout: CappedLog,
}

/// An output stream of the worker.
#[derive(Debug)]
struct Stream {
    pipe: Option<PipeReader>,
    tail: Tail,
}

/// Both streams, with their files.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: Stream,
    stderr: Stream,
    files: Files,
    buffer: Vec<u8>,
}

/// Totals for the exit record.
#[derive(Debug)]
pub(crate) struct OutputTotals {
    pub(crate) stdout_tail: String,
    pub(crate) stderr_tail: String,
    pub(crate) stdout: StdoutRecord,
}

impl Files {
    /// Opens the files before there is a worker, because output without a file would be lost.
    pub(crate) fn create(run: &RunDir, spec: &ShimSpec) -> io::Result<Self> {
        let log = CappedLog::create(&spec.log, spec.log_cap)?;
        let stdout = CappedLog::create(&run.stdout_path(), spec.stdout_cap)?;
        Ok(Self { log, stdout })
    }
}

impl Output {
    /// Reads from two pipes, or from one end of a terminal. The descriptors must be non-blocking.
    pub(crate) fn new(stdout: OwnedFd, stderr: Option<OwnedFd>, files: Files) -> Self {
        let (stdout, stderr) = (Stream::new(Some(stdout)), Stream::new(stderr));
        Self { stdout, stderr, files, buffer: vec![0; COPY_BYTES] }
    }

    /// Copies available output, up to one buffer of each stream. Returns false if there was none.
    pub(crate) fn copy(&mut self) -> bool {
        let (stdout, stderr) = (self.copy_stdout(), self.copy_stderr());
        stdout || stderr
    }

    /// Adds a line of the supervisor to the log alone.
    pub(crate) fn note(&mut self, text: &str) {
        self.files.log.write(format!("\n[supervisor: {text}]\n").as_bytes());
    }

    /// Returns the descriptors of the open pipes, for poll(2).
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.stdout, &self.stderr].into_iter().filter_map(|stream| stream.pipe.as_ref().map(AsFd::as_fd))
    }

    /// Copies the rest of the output once no process of the run lives. Returns the totals.
    pub(crate) fn finish(&mut self) -> OutputTotals {
        // Only a process outside of the run can still write here. Its output is bounded, and not waited for.
        for _ in 0..LAST_BYTES / COPY_BYTES {
            if !self.copy_stdout() {
                break;
            }
        }
        for _ in 0..LAST_BYTES / COPY_BYTES {
            if !self.copy_stderr() {
                break;
            }
        }
        self.files.log.finish();
        self.files.stdout.finish();
        OutputTotals {
            stdout_tail: self.stdout.tail.text(),
            stderr_tail: self.stderr.tail.text(),
            stdout: self.files.stdout.record(),
        }
    }

    /// Returns false if there was no output.
    fn copy_stdout(&mut self) -> bool {
        let bytes = self.stdout.read(&mut self.buffer);
        if bytes.is_empty() {
            return false;
        }
        self.files.log.write(bytes);
        self.files.stdout.write(bytes);
        true
    }

    /// Returns false if there was no output.
    fn copy_stderr(&mut self) -> bool {
        let bytes = self.stderr.read(&mut self.buffer);
        if bytes.is_empty() {
            return false;
        }
        self.files.log.write(bytes);
        true
    }
}

impl Stream {
    fn new(pipe: Option<OwnedFd>) -> Self {
        Self { pipe: pipe.map(PipeReader::from), tail: Tail::default() }
    }

    /// Reads available bytes, up to one buffer; nothing once the pipe is closed.
    fn read<'a>(&mut self, buffer: &'a mut [u8]) -> &'a [u8] {
        let Some(pipe) = &mut self.pipe else { return &[] };
        match pipe.read(buffer) {
            Ok(count) if count > 0 => {
                self.tail.push(&buffer[..count]);
                &buffer[..count]
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                &[]
            }
            _ => {
                self.pipe = None;
                &[]
            }
        }
    }
}
