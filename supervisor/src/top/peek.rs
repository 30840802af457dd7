//! Log of a task on the screen: its lines, and the visible part.

use std::collections::VecDeque;

use kernel::{RunId, TaskId};

use super::message::LogPart;
use base::terminal::{Ink, without_styles};

/// Limit on the lines kept; `supervisor logs` has older ones.
const KEPT: usize = 2000;
/// Limit on an agent's line in bytes; a longer one is split.
const LINE_BYTES: usize = 4 << 20;
/// Limit on the characters kept of a line.
const SHOWN_CHARACTERS: usize = 4000;

/// A line of text with its colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InkedLine {
    pub(super) ink: Option<Ink>,
    pub(super) text: String,
}

/// Log of a task on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogView {
    pub(super) task: TaskId,
    pub(super) title: String,
    run: Option<RunId>,
    lines: VecDeque<InkedLine>,
    /// Incomplete last line.
    begun: String,
    /// Number of lines below the visible part.
    back: usize,
    /// True once anything was read.
    is_read: bool,
}

impl LogView {
    pub(super) fn for_task(task: TaskId, title: String) -> Self {
        let (lines, begun) = (VecDeque::new(), String::new());
        LogView { task, title, run: None, lines, begun, back: 0, is_read: false }
    }

    /// Returns true if new lines are shown as they arrive.
    pub(super) fn follows(&self) -> bool {
        self.back == 0
    }

    /// Scrolls towards the beginning. New lines then do not move the text.
    pub(super) fn up(&mut self, lines: usize) {
        self.back = self.back.saturating_add(lines).min(self.lines.len().saturating_sub(1));
    }

    /// Scrolls towards the end.
    pub(super) fn down(&mut self, lines: usize) {
        self.back = self.back.saturating_sub(lines);
    }

    /// Returns the lines above the bottom of the visible part, nearest first, and the lines below it.
    pub(super) fn around(&self) -> (impl Iterator<Item = &InkedLine>, impl Iterator<Item = &InkedLine>) {
        let end = self.lines.len() - self.back.min(self.lines.len());
        (self.lines.range(..end).rev(), self.lines.range(end..))
    }

    /// Describes the position: the run, and the number of lines below.
    pub(super) fn position(&self) -> String {
        let run = self.run.map(|run| format!("run {run}"));
        let below = (self.back > 0).then(|| format!("{} below", kernel::Counted(self.back as u64, "line")));
        let parts: Vec<String> = run.into_iter().chain(below).collect();
        parts.join(", ")
    }

    /// Returns the text shown without any line.
    pub(super) fn emptiness(&self) -> &'static str {
        match (self.is_read, self.run) {
            (false, _) => "reading …",
            (true, None) => "No run yet.",
            (true, Some(_)) => "Nothing written yet.",
        }
    }

    /// Adds a piece of the log.
    pub(super) fn take(&mut self, piece: &LogPart) {
        self.is_read = true;
        if piece.run != self.run {
            if self.run.is_some() {
                self.end_line(piece);
                let next = piece.run.map(|run| format!("[run {run}]")).unwrap_or_default();
                self.push(Some(Ink::Dim), &next);
            }
            self.run = piece.run;
        }
        for part in piece.text.split_inclusive('\n') {
            self.begun.push_str(part);
            if part.ends_with('\n') || self.begun.len() > LINE_BYTES {
                self.end_line(piece);
            }
        }
        if piece.ended {
            self.end_line(piece);
        }
    }

    fn end_line(&mut self, piece: &LogPart) {
        let line = std::mem::take(&mut self.begun);
        let line = line.trim_end_matches(['\n', '\r']);
        if line.trim().is_empty() {
            return;
        }
        let Some(read) = piece.format.and_then(|format| format.readable(line)) else {
            return self.push(None, &without_styles(line));
        };
        for one in read {
            let (ink, text) = one.drawn();
            for line in text.lines() {
                self.push(ink, line);
            }
        }
    }

    fn push(&mut self, ink: Option<Ink>, text: &str) {
        let text = text.chars().take(SHOWN_CHARACTERS).collect();
        self.lines.push_back(InkedLine { ink, text });
        if self.back > 0 {
            self.back += 1;
        }
        if self.lines.len() > KEPT {
            self.lines.pop_front();
            self.back = self.back.min(self.lines.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str) -> LogPart {
        let task = "t_0123abcd".parse().unwrap();
        LogPart { task, run: Some(RunId(1)), format: None, text: text.to_owned(), ended: false }
    }

    fn above(peek: &LogView) -> Vec<&str> {
        let (above, _) = peek.around();
        above.map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn the_end_is_followed_until_a_person_goes_up_and_then_the_text_stays() {
        let mut peek = LogView::for_task("t_0123abcd".parse().unwrap(), String::new());
        peek.take(&piece("1\n2\n3\n4\nbeg"));
        assert_eq!(above(&peek), ["4", "3", "2", "1"]);
        peek.up(1);
        peek.take(&piece("un\n6\n"));
        assert_eq!((above(&peek), peek.follows()), (vec!["3", "2", "1"], false));
        peek.up(100);
        assert_eq!(above(&peek), ["1"]);
        peek.down(usize::MAX);
        assert_eq!((above(&peek)[..2].to_vec(), peek.follows()), (vec!["6", "begun"], true));
    }

    #[test]
    fn a_worker_that_writes_without_end_is_kept_in_part() {
        let mut peek = LogView::for_task("t_0123abcd".parse().unwrap(), String::new());
        peek.take(&piece(&"x\n".repeat(2 * KEPT)));
        peek.take(&piece(&"y".repeat(LINE_BYTES + 1)));
        peek.take(&piece("z"));
        assert_eq!((peek.lines.len(), peek.begun.as_str()), (KEPT, "z"));
        assert_eq!(above(&peek)[0].len(), SHOWN_CHARACTERS);
    }
}
