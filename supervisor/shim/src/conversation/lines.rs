//! Splits a stream that comes in pieces into lines. A line over the limit is skipped.

/// Received part of an incomplete line.
#[derive(Debug)]
pub(super) struct Lines {
    begun: Vec<u8>,
    most: usize,
    is_too_long: bool,
}

impl Lines {
    /// Lines of at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Lines { begun: Vec::new(), most, is_too_long: false }
    }

    /// Takes the next piece, and hands over each line that it ends, without its end.
    pub(super) fn take(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.begun.len() + part.len() > self.most {
                self.is_too_long = true;
                self.begun = Vec::new();
            }
            if !self.is_too_long {
                self.begun.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                if let Some(line) = self.begun.strip_suffix(b"\n") {
                    each(line);
                }
                self.begun.clear();
                self.is_too_long = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_one_that_is_too_long_hides_no_other() {
        let mut lines = Lines::new(8);
        let mut taken = Vec::new();
        for piece in ["on", "e\ntwo\nmuch too", " long", "\nlast\nrest"] {
            lines.take(piece.as_bytes(), |line| taken.push(String::from_utf8_lossy(line).into_owned()));
        }
        assert_eq!(taken, ["one", "two", "last"]);
    }
}
