//! Keeps the beginning of a script's output. The rest is read, counted and discarded, so that a script is never blocked
//! by its output.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;

/// Time to wait for the end of a stream that a surviving process holds open.
const HELD_OPEN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct RetainedBytes {
    bytes: Vec<u8>,
    left_out: u64,
}

/// A stream being read.
#[derive(Debug)]
pub(super) struct OutputHead {
    kept: Arc<Mutex<RetainedBytes>>,
    reader: JoinHandle<()>,
    kilobytes: usize,
}

impl OutputHead {
    /// Starts to read a pipe to its end, and keeps this many KiB.
    pub(super) fn read(pipe: OwnedFd, kilobytes: usize) -> std::io::Result<Self> {
        let mut pipe = Receiver::from_owned_fd(pipe)?;
        let kept = Arc::new(Mutex::new(RetainedBytes::default()));
        let into = Arc::clone(&kept);
        let reader = tokio::spawn(async move {
            let mut part = vec![0_u8; 16 << 10];
            // An error ends the stream as well; earlier output is kept.
            while let Ok(count @ 1..) = pipe.read(&mut part).await {
                into.lock().unwrap_or_else(PoisonError::into_inner).add(&part[..count], kilobytes << 10);
            }
        });
        Ok(OutputHead { kept, reader, kilobytes })
    }

    /// Returns the text, with a note on the discarded part.
    pub(super) async fn text(mut self) -> String {
        if tokio::time::timeout(HELD_OPEN, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.text(self.kilobytes)
    }
}

impl RetainedBytes {
    fn add(&mut self, part: &[u8], most: usize) {
        let fits = part.len().min(most.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(&part[..fits]);
        self.left_out = self.left_out.saturating_add(u64::try_from(part.len() - fits).unwrap_or(u64::MAX));
    }

    fn text(&self, kilobytes: usize) -> String {
        if self.left_out == 0 {
            return String::from_utf8_lossy(&self.bytes).into_owned();
        }
        // A character split by the cut is discarded with the rest.
        let cut = match std::str::from_utf8(&self.bytes) {
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            Ok(_) | Err(_) => self.bytes.len(),
        };
        let split = u64::try_from(self.bytes.len() - cut).unwrap_or_default();
        let left_out = self.left_out.saturating_add(split);
        let whole = left_out.saturating_add(u64::try_from(cut).unwrap_or_default());
        let text = String::from_utf8_lossy(&self.bytes[..cut]);
        format!("{text}\n[output truncated at {kilobytes}KB: {left_out} of {whole} bytes left out]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(parts: &[&str], most: usize) -> (String, u64) {
        let mut kept = RetainedBytes::default();
        for part in parts {
            kept.add(part.as_bytes(), most);
        }
        (kept.text(50), kept.left_out)
    }

    #[test]
    fn what_fits_is_whole_and_nothing_is_said_of_it() {
        assert_eq!(cut(&["ab", "cd"], 4), ("abcd".to_owned(), 0));
    }

    #[test]
    fn the_head_is_kept_and_the_rest_counted() {
        let (text, _) = cut(&["abc", "def"], 4);
        assert_eq!(text, "abcd\n[output truncated at 50KB: 2 of 6 bytes left out]");
    }

    #[test]
    fn a_character_is_not_split() {
        let (text, _) = cut(&["abcä!"], 4);
        assert_eq!(text, "abc\n[output truncated at 50KB: 3 of 6 bytes left out]");
    }
}
