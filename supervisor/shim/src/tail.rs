//! Keeps the last bytes of a stream, for the exit record.

/// Number of bytes of the end of a stream in an exit record.
const KEPT: usize = 4096;

/// Last bytes of a stream, at least [`KEPT`] of a longer one.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Up to twice [`KEPT`] bytes, so that they are moved seldom.
    bytes: Vec<u8>,
    /// True if earlier bytes were dropped.
    cut: bool,
}

impl Tail {
    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let from = bytes.len().saturating_sub(KEPT);
        self.cut |= from > 0;
        self.bytes.extend_from_slice(&bytes[from..]);
        if self.bytes.len() > 2 * KEPT {
            self.bytes.drain(..self.bytes.len() - KEPT);
            self.cut = true;
        }
    }

    /// Returns the last [`KEPT`] bytes as text, from the first whole character on.
    pub(crate) fn text(&self) -> String {
        let from = self.bytes.len().saturating_sub(KEPT);
        let mut bytes = &self.bytes[from..];
        if self.cut || from > 0 {
            // A cut character leaves at most three continuation bytes (UTF-8).
            let torn = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
            bytes = &bytes[torn..];
        }
        String::from_utf8_lossy(bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_stream_is_kept_whole() {
        let mut tail = Tail::default();
        tail.push(b"one ");
        tail.push(b"two");
        assert_eq!(tail.text(), "one two");
    }

    #[test]
    fn a_long_stream_ends_with_its_last_bytes_and_begins_with_a_whole_character() {
        let mut tail = Tail::default();
        tail.push("é".repeat(10_000).as_bytes());
        tail.push(b"x");
        let text = tail.text();
        assert_eq!(text, format!("{}x", "é".repeat(2047)));
    }

    #[test]
    fn memory_stays_bounded() {
        let mut tail = Tail::default();
        for _ in 0..10_000 {
            tail.push(&[b'a'; 1000]);
        }
        assert!(tail.bytes.capacity() <= 4 * KEPT);
    }
}
