//! The readable form of an agent's output.

use crate::output::Output;
use base::terminal::printable_output;
use setup::lanes::{Format, shown};

/// Limit on the bytes of a line. A longer line is shown in pieces.
const LINE_BYTES: usize = 4 * 1024 * 1024;

/// Start of a line that has no end yet.
#[derive(Debug, Default)]
pub(super) struct UnfinishedLine(String);

impl UnfinishedLine {
    /// Takes a piece of a stream, and returns the lines that it completes.
    pub(super) fn take(&mut self, piece: &str) -> Vec<String> {
        self.0.push_str(piece);
        let whole = self.0.rfind('\n').map_or(0, |end| end + 1);
        let mut lines: Vec<String> = self.0[..whole].lines().map(str::to_owned).collect();
        self.0.drain(..whole);
        if self.0.len() > LINE_BYTES {
            lines.extend(self.rest());
        }
        lines
    }

    /// Returns the rest at the end of the stream.
    pub(super) fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.0);
        (!rest.is_empty()).then_some(rest)
    }
}

/// Returns a line in readable form, with newlines: the texts and tool calls of an agent, or the line itself unless it
/// is empty.
pub(super) fn readable(line: &str, format: Option<Format>, output: Output) -> String {
    shown(line, format, &output.screen())
        .unwrap_or_else(|| if line.trim().is_empty() { String::new() } else { printable_output(line) + "\n" })
}

#[cfg(test)]
mod tests {
    use super::UnfinishedLine;

    #[test]
    fn lines_come_out_when_they_are_whole() {
        let mut begun = UnfinishedLine::default();
        assert!(begun.take("{\"a\"").is_empty());
        assert_eq!(begun.take(":1}\n\nsecond\nthi"), ["{\"a\":1}", "", "second"]);
        assert_eq!(begun.rest().as_deref(), Some("thi"));
        assert_eq!(begun.rest(), None);
    }
}
