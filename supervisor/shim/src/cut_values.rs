//! Shortens a long line of an agent's JSON: long values lose their ends, because no reader needs all of them, and other
//! values stay. The bytes are handled one at a time, so a line of any length needs a bounded amount of memory.

/// Limit on a line, in bytes. An agent's last event, which reports its end, is shorter once its long values are cut.
pub(crate) const LINE_BYTES: usize = 1024 * 1024;

/// Limit on a string in a longer line, in bytes. The readers of the line keep less of a final message and of the text of
/// an error.
const STRING_BYTES: usize = 64 * 1024;

/// Limit on a string after the first half of the line, in bytes.
const SHORT_STRING_BYTES: usize = 1024;

/// Limits on the bytes of an array or object in a longer line, by its depth; elements beyond the limit are left out. The
/// outermost container has no limit. Deeper containers have smaller limits, so that a large value leaves room for the other
/// values of its container. The last limit applies to all greater depths.
const CONTAINER_BYTES: [usize; 4] = [usize::MAX, 512 * 1024, 64 * 1024, 8 * 1024];

/// Limit on the depth of arrays and objects; the elements of deeper ones are left out. `serde_json` refuses a depth of 128.
const DEPTH: usize = 64;

/// Copies a line of JSON, and leaves out the end of each long string, array and object. The copy has a bounded length.
#[derive(Debug, Default)]
pub(crate) struct CutValues {
    line: Vec<u8>,
    /// Bytes of the current string so far; none outside of strings, `usize::MAX` once the string is cut.
    string: Option<usize>,
    /// Number of bytes that still belong to the current escape: 1 after a backslash, else 0. The four digits after `\u`
    /// count as ordinary bytes.
    escape: u8,
    /// Positions in the line at which the open arrays and objects begin.
    open: Vec<usize>,
    /// Number of arrays and objects that are open within the elements being left out; none while elements are kept.
    left_out: Option<usize>,
    /// True if a byte of the copy was dropped because the line was at its limit.
    is_too_long: bool,
}

impl CutValues {
    /// Takes the next bytes of the line.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.take(*byte);
        }
    }

    fn take(&mut self, byte: u8) {
        match self.string {
            Some(length) => self.take_in_string(byte, length),
            None => self.take_outside(byte),
        }
    }

    fn take_outside(&mut self, byte: u8) {
        self.string = (byte == b'"').then_some(0);
        let is_full = self.is_full();
        // The bracket that closes the container ends the omission, so it is kept below. The comma that begins one is not.
        match (byte, &mut self.left_out) {
            (b'[' | b'{', Some(inside)) => *inside += 1,
            (b']' | b'}', Some(0)) => self.left_out = None,
            (b']' | b'}', Some(inside)) => *inside -= 1,
            (b',', None) if is_full => self.left_out = Some(0),
            _ => {}
        }
        self.keep(byte);
        match byte {
            b'[' | b'{' if self.left_out.is_none() => {
                self.open.push(self.line.len());
                self.left_out = (self.open.len() > DEPTH).then_some(0);
            }
            b']' | b'}' if self.left_out.is_none() => {
                self.open.pop();
            }
            _ => {}
        }
    }

    /// Returns true if the innermost array or object has reached its limit.
    fn is_full(&self) -> bool {
        let most = self.open.len().checked_sub(1).map(|depth| CONTAINER_BYTES[depth.min(3)]);
        self.open.last().is_some_and(|begin| most.is_some_and(|most| self.line.len() - begin > most))
    }

    fn take_in_string(&mut self, byte: u8, length: usize) {
        if self.escape == 0 && byte == b'"' {
            self.string = None;
            return self.keep(byte);
        }
        let begins = self.escape == 0;
        self.escape = match (self.escape, byte) {
            (0, b'\\') => 1,
            (0, _) => 0,
            (more, _) => more - 1,
        };
        let is_half = self.line.len() > LINE_BYTES / 2;
        let most = if is_half { SHORT_STRING_BYTES } else { STRING_BYTES };
        // A string is cut between two characters of UTF-8, and never right after a backslash. A cut among the digits after
        // `\u` leaves an incomplete escape, which `lenient::read` replaces.
        let is_between = begins && byte & 0xc0 != 0x80;
        if length == usize::MAX || (length >= most && is_between) {
            self.string = Some(usize::MAX);
            return;
        }
        self.string = Some(length + 1);
        self.keep(byte);
    }

    fn keep(&mut self, byte: u8) {
        if self.left_out.is_some() {
            return;
        }
        if self.line.len() < LINE_BYTES {
            self.line.push(byte);
        } else {
            self.is_too_long = true;
        }
    }

    /// Returns the shortened line; none if it is longer than [`LINE_BYTES`] even so.
    pub(crate) fn line(self) -> Option<Vec<u8>> {
        (!self.is_too_long).then_some(self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_of_json_comes_with_its_arrays_and_objects_cut() {
        let cut = |line: &str| {
            let mut cut = CutValues::default();
            cut.push(line.as_bytes());
            cut.line().map(|line| String::from_utf8(line).unwrap())
        };
        let short = "{\"name\":\"Bash, [x\",\"n\":[1,2]},".repeat(100_000);
        let keys = (0..200_000).map(|n| format!("\"k{n}\":{n},")).collect::<Vec<_>>().concat();
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        let long = format!("\"{}\",", "x".repeat(100_000)).repeat(100);
        for big in [
            format!("[{short}1]"),
            format!("{{{keys}\"z\":1}}"),
            format!("{{\"content\":[{short}1],\"more\":{{{keys}\"z\":1}},\"inner\":7}}"),
            deep,
            format!("[{long}1]"),
        ] {
            let line = cut(&format!("{{\"big\":{big},\"usage\":{{\"n\":[1,2]}},\"cost\":0.5}}")).unwrap();
            let read: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!((&read["cost"], &read["usage"]["n"]), (&0.5.into(), &serde_json::json!([1, 2])));
            if big.contains("inner") {
                assert_eq!(read["big"]["inner"], 7);
            }
        }
        // Brackets that open nothing, or are never closed.
        for line in ["]]]}}}", "[[[{{{", "[1,2", "{\"a"] {
            assert_eq!(cut(line).as_deref(), Some(line));
        }
    }
}
