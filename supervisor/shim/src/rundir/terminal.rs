//! Terminal of a run: its size, and the input of a person, which the daemon writes into the FIFO `keys`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use super::{RunDir, TerminalSize};

const KEYS: &str = "keys";

/// Largest write that a FIFO takes whole or not at all: `PIPE_BUF` of Linux (pipe(7)).
const FRAME_BYTES: usize = 4096;
const HEAD_BYTES: usize = 3;
const TEXT: u8 = b't';
const SIZE: u8 = b's';

/// Input of a person at the terminal of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keyed {
    /// Bytes for the worker, at most [`Keyed::BYTES`].
    Text(Vec<u8>),
    /// The terminal has another size.
    Size(TerminalSize),
}

impl Keyed {
    /// Limit on the bytes of one frame.
    pub const BYTES: usize = FRAME_BYTES - HEAD_BYTES;

    /// Returns the frame: a letter, a length, and that many bytes.
    fn frame(&self) -> Vec<u8> {
        let (kind, body) = match self {
            Keyed::Text(bytes) => (TEXT, bytes.clone()),
            Keyed::Size(TerminalSize { rows, columns }) => {
                (SIZE, rows.to_le_bytes().into_iter().chain(columns.to_le_bytes()).collect())
            }
        };
        let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_le_bytes();
        std::iter::once(kind).chain(length).chain(body).collect()
    }

    /// Removes the first whole frame from the bytes read; none without a whole frame. An invalid frame is dropped with all bytes
    /// behind it.
    pub(crate) fn take(read: &mut Vec<u8>) -> Option<Keyed> {
        let (&[kind, low, high], rest) = read.split_first_chunk::<HEAD_BYTES>()?;
        let length = usize::from(u16::from_le_bytes([low, high]));
        let body = rest.get(..length)?.to_vec();
        read.drain(..HEAD_BYTES + length);
        match (kind, body.as_slice()) {
            (TEXT, _) => Some(Keyed::Text(body)),
            (SIZE, &[a, b, c, d]) => Some(Keyed::Size(TerminalSize {
                rows: u16::from_le_bytes([a, b]),
                columns: u16::from_le_bytes([c, d]),
            })),
            _ => {
                read.clear();
                None
            }
        }
    }
}

/// Reasons why a frame was not passed to the terminal of a run.
#[derive(Debug, thiserror::Error)]
pub enum NotKeyed {
    /// The FIFO is full, because the worker has not read the input before.
    #[error("its worker does not read what is typed")]
    Full,
    /// The run has no terminal, or is over.
    #[error("it has no terminal")]
    Absent,
    /// The FIFO could not be written.
    #[error("write {path}")]
    Write {
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl RunDir {
    /// Returns the path of the FIFO, which the shim makes.
    pub(crate) fn keys_path(&self) -> PathBuf {
        self.path().join(KEYS)
    }

    /// Returns true if the run has a terminal: its shim has made the FIFO.
    pub fn has_terminal(&self) -> bool {
        let metadata = std::fs::symlink_metadata(self.keys_path());
        metadata.is_ok_and(|found| found.file_type().is_fifo())
    }

    /// Writes a frame to the terminal of a live run as a whole, or not at all. Never waits.
    ///
    /// # Errors
    /// Fails if nothing was written. A text that is longer than [`Keyed::BYTES`] is refused.
    pub fn key(&self, keyed: &Keyed) -> Result<(), NotKeyed> {
        let path = self.keys_path();
        let frame = keyed.frame();
        if frame.len() > FRAME_BYTES {
            return Err(NotKeyed::Write { path, source: io::ErrorKind::FileTooLarge.into() });
        }
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        let opened = OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(&path);
        let fails = |source: io::Error| match source.raw_os_error() {
            Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => NotKeyed::Absent,
            _ if source.kind() == io::ErrorKind::NotFound => NotKeyed::Absent,
            _ if source.kind() == io::ErrorKind::WouldBlock => NotKeyed::Full,
            _ if source.kind() == io::ErrorKind::BrokenPipe => NotKeyed::Absent,
            _ => NotKeyed::Write { path: path.clone(), source },
        };
        // The frame is no longer than PIPE_BUF, so the FIFO takes all of it or nothing (pipe(7)).
        opened.and_then(|mut keys| keys.write_all(&frame)).map_err(fails)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_keyed_comes_out_as_it_went_in_and_in_pieces() {
        let all = [
            Keyed::Text(b"ls\r".to_vec()),
            Keyed::Size(TerminalSize { rows: 40, columns: 300 }),
            Keyed::Text(vec![0xff; Keyed::BYTES]),
            Keyed::Text(Vec::new()),
        ];
        let stream: Vec<u8> = all.iter().flat_map(Keyed::frame).collect();
        let (mut read, mut out) = (Vec::new(), Vec::new());
        for byte in stream {
            read.push(byte);
            out.extend(Keyed::take(&mut read));
        }
        assert_eq!((out.as_slice(), read.len()), (all.as_slice(), 0));
    }

    #[test]
    fn what_is_no_frame_is_dropped() {
        for bytes in [b"x\x00\x00".to_vec(), b"s\x01\x00a".to_vec()] {
            let mut read = bytes;
            assert_eq!(Keyed::take(&mut read), None);
            assert!(read.is_empty());
        }
    }

    #[test]
    fn a_run_without_a_terminal_says_that_and_one_that_does_not_read_is_full() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::open(place.path()).unwrap();
        let text = |length| Keyed::Text(vec![b'x'; length]);
        assert!(matches!(run.key(&text(1)), Err(NotKeyed::Absent)));
        nix::unistd::mkfifo(&run.keys_path(), nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR)
            .unwrap();
        assert!(matches!(run.key(&text(1)), Err(NotKeyed::Absent)), "nobody reads");
        let _reader = OpenOptions::new().read(true).write(true).open(run.keys_path()).unwrap();
        let passed = (0..100).take_while(|_| run.key(&text(Keyed::BYTES)).is_ok()).count();
        assert!((1..100).contains(&passed), "{passed}");
        assert!(matches!(run.key(&text(Keyed::BYTES)), Err(NotKeyed::Full)));
        assert!(run.key(&text(Keyed::BYTES + 1)).is_err());
    }
}
