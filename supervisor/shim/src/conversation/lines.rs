//! Splits a stream that is read in pieces into lines of bounded length.

use crate::cut_values::{CutValues, LINE_BYTES};

/// Splitter with the part of an incomplete line that was received.
#[derive(Debug)]
pub(super) struct Lines {
    /// Received part of a line within the limit.
    partial: Vec<u8>,
    /// Limit on a line, in bytes.
    most: usize,
    /// Received part of a line beyond the limit; none while the line is within it.
    long: Option<CutValues>,
    /// Treatment of lines beyond the limit.
    long_ones: Long,
}

/// Treatment of a line beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Long {
    Skipped,
    Cut,
}

impl Lines {
    /// Makes a splitter for lines of at most `most` bytes. Longer lines are skipped.
    pub(super) fn new(most: usize) -> Self {
        Lines { partial: Vec::new(), most, long: None, long_ones: Long::Skipped }
    }

    /// Makes a splitter for lines of JSON. The long values of a line over 1 MiB are cut, and the line is skipped if it
    /// is still longer.
    pub(super) fn cut() -> Self {
        Lines { long_ones: Long::Cut, ..Lines::new(LINE_BYTES) }
    }

    /// Takes the next piece of the stream, and passes each completed line to `each`, without its line end.
    pub(super) fn take(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.long.is_none() && self.partial.len() + part.len() > self.most {
                let mut long = CutValues::default();
                let partial = std::mem::take(&mut self.partial);
                self.push_long(&mut long, &partial);
                self.long = Some(long);
            }
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            match self.long.take() {
                Some(mut long) => {
                    self.push_long(&mut long, text);
                    self.long = Some(long);
                }
                None => self.partial.extend_from_slice(text),
            }
            if part.len() > text.len() {
                match self.long.take() {
                    None => each(&self.partial),
                    Some(long) if self.long_ones == Long::Cut => {
                        if let Some(line) = long.line() {
                            each(&line);
                        }
                    }
                    Some(_) => {}
                }
                self.partial.clear();
            }
        }
    }

    /// Adds a part of a line beyond the limit, unless such lines are skipped.
    fn push_long(&self, long: &mut CutValues, part: &[u8]) {
        if self.long_ones == Long::Cut {
            long.push(part);
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
