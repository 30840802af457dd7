//! The last bytes of a stream, for the exit record.

/// Length of the end of a stream that an exit record carries, in bytes.
const KEPT: usize = 4096;

/// Keeps the last 4096 bytes that went by.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
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

    /// Returns the end of the stream as text, beginning with a whole character.
    pub(crate) fn text(&self) -> String {
        let from = self.bytes.len().saturating_sub(KEPT);
        let mut bytes = &self.bytes[from..];
        if self.cut || from > 0 {
            // A character has at most three continuation bytes.
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
