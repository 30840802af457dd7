//! `log`: returns the output of a run piece by piece, and can wait for the next piece. `logs` and `run` use it.
//!
//! A log at its cap loses a part of its text, so offsets of readers become too large. An offset beyond the end of such a log
//! is from before a cut. It is reduced by the length of a cut, which follows from the cap. Otherwise a reader at the end of a
//! full log would see no further text.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use kernel::{Purpose, RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use api::{Call, REPLY_TIME, Verb, blocking, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::Screen;
use setup::lanes::{Format, shown};

/// Limit on the text of one reply, in bytes.
const PAGE: u64 = 1 << 20;
/// Limit on the wait of one call.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Interval at which the length of the file is polled.
const GROWTH: Duration = Duration::from_millis(50);
/// Interval at which the board is polled if another process ends the run.
const UNANNOUNCED: Duration = Duration::from_secs(1);

/// Return a part of the log of a run
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The task
    pub task_id: Option<TaskId>,
    /// The run [default: the latest that is not a check]
    pub run: Option<RunId>,
    /// Start at this byte
    pub offset: Option<u64>,
    /// Without an offset: only the last bytes, at most this many
    pub tail: Option<u64>,
    /// Without an offset: only the last lines, at most this many
    pub lines: Option<u32>,
    /// At most this many bytes; there is a bound in any case
    pub limit: Option<u64>,
    /// Show an agent's lines as its words, calls and outcomes, in whole lines and with the colours of terminals
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub readable: bool,
    /// Wait up to this many seconds until there is a text or the run has ended
    pub wait: u64,
}

/// Piece of the log of a run.
#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the reply")]
pub struct LogReply {
    pub task_id: TaskId,
    /// Run that wrote the log; none if the task has had no run.
    pub run_id: Option<RunId>,
    pub path: Option<String>,
    /// Offset of this piece, in bytes.
    pub offset: u64,
    pub next_offset: u64,
    #[serde(default)]
    pub length: u64,
    /// True if the log continues after this piece.
    #[serde(default)]
    pub more: bool,
    /// True if the run has ended, so that the log is complete.
    pub ended: bool,
    /// Format of the worker's standard output; none if its lane no longer exists.
    #[serde(default)]
    pub stdout: Option<Format>,
    /// True if the text is the readable form of an agent's lines.
    #[serde(default)]
    pub readable: bool,
    /// True if the run is active and has a terminal: the text is the output of the terminal.
    #[serde(default)]
    pub terminal: bool,
    /// Latest run of the task if it is a check after this run. None if the request names a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<RunId>,
    /// Text of the piece. Bytes that are not UTF-8 appear as U+FFFD.
    pub text: String,
}

impl LogReply {
    /// The reply for a task that has had no run.
    fn of_no_run(task_id: TaskId) -> Self {
        LogReply {
            task_id,
            run_id: None,
            path: None,
            offset: 0,
            next_offset: 0,
            length: 0,
            more: false,
            ended: false,
            stdout: None,
            readable: false,
            terminal: false,
            check: None,
            text: String::new(),
        }
    }
}

impl Verb for Log {
    verb! { "log": Operator, Read, members => LogReply }

    fn answered_within(&self) -> Duration {
        REPLY_TIME + Duration::from_secs(self.wait).min(LONGEST_WAIT)
    }

    async fn run(self, call: Call) -> Result<LogReply, Failure> {
        if let Some(offset) = self.offset.filter(|offset| i64::try_from(*offset).is_err()) {
            return Err(Failure::usage(format!("`offset` is {offset}, which no file reaches"))
                .hint("send the `next_offset` of the piece before, or none"));
        }
        let until = Instant::now() + Duration::from_secs(self.wait).min(LONGEST_WAIT);
        let mut news = call.board()?.changes();
        loop {
            news.mark_unchanged();
            let piece = self.read_so_far(&call).await?;
            let now = Instant::now();
            if piece.ended || piece.next_offset > piece.offset || call.board()?.is_closing() || now >= until {
                return Ok(piece);
            }
            // The end of a run is a commit. Without a daemon another process makes it, which notifies nobody here.
            let again = if call.service.daemon().is_some() { until } else { until.min(now + UNANNOUNCED) };
            // Cancel-safe: whichever branch wins, the next iteration reads the file again.
            tokio::select! {
                changed = news.changed() => drop(changed),
                () = grown(&piece) => {}
                () = tokio::time::sleep_until(again) => {}
            }
        }
    }
}

impl Log {
    /// Reads the text written so far.
    async fn read_so_far(&self, call: &Call) -> Result<LogReply, Failure> {
        let id = crate::views::parse::named(self.task_id.clone())?;
        let actor = call.actor.clone();
        let task_id = id.clone();
        let runs = call
            .read(move |view| {
                view.task_for(&id, &actor)?;
                view.runs(&id)
            })
            .await?;
        let run = match self.run {
            Some(wanted) => runs.iter().find(|run| run.id == wanted).ok_or_else(|| {
                Failure::new(Code::NotFound, format!("{task_id} has no run {wanted}"))
                    .hint(format!("supervisor runs {task_id}"))
            })?,
            None => {
                // Without a number, the reply has the output of the task's last worker. The output of a check needs the
                // number of its run.
                match runs.iter().rfind(|run| run.purpose != Purpose::Check).or(runs.last()) {
                    Some(run) => run,
                    None => return Ok(LogReply::of_no_run(task_id)),
                }
            }
        };
        let check = runs.last().map(|last| last.id).filter(|last| self.run.is_none() && *last != run.id);
        // The path is derived, never taken from a request.
        let path = call.service.root().log(call.board()?.name(), &task_id, run.id);
        let ended = run.ended_at.is_some();
        let (roster, config) = (call.service.roster(), call.service.config());
        let lane = run.profile.as_ref().and_then(|profile| roster.resolve(profile, None, &config).ok());
        let stdout = lane.map(|resolved| resolved.lane.output());
        let dir = call.service.root().run_dir(call.board()?.name(), run.id);
        let dir = shim::rundir::RunDir::open(&dir).ok();
        let terminal = !ended && dir.as_ref().is_some_and(shim::rundir::RunDir::has_terminal);
        let cap = dir.and_then(|dir| dir.spec().ok()).map_or(config.worker.log_cap, |spec| spec.log_cap);
        let (log, at) = (self.clone(), path.clone());
        let format = stdout.filter(|format| self.readable && format.is_of_events());
        // A slow disk must not block the threads of the async runtime.
        let read = move || log.piece(&at, ended, cap, format).map(|piece| (piece.text(format), piece));
        let (text, piece) = blocking("the log was not read", read).await??;
        Ok(LogReply {
            run_id: Some(run.id),
            path: Some(path.display().to_string()),
            offset: piece.start,
            next_offset: piece.end(),
            length: piece.length,
            more: piece.more,
            ended,
            stdout,
            readable: format.is_some(),
            terminal,
            check,
            text,
            task_id,
        })
    }

    /// Reads a piece of the file, of at most [`PAGE`] bytes; `cap` is the cap of the log. The piece ends between two
    /// characters, and with a format between two lines, unless the log itself ends there.
    fn piece(&self, path: &Path, ended: bool, cap: u64, format: Option<Format>) -> Result<LogPiece, Failure> {
        let fail = |e: std::io::Error| Failure::file("read the log", path, &e);
        let mut file = match std::fs::File::open(path) {
            Ok(file) => file,
            // A run that has not started yet has no file.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(LogPiece::default()),
            Err(e) => return Err(fail(e)),
        };
        let length = file.metadata().map_err(fail)?.len();
        let start = match self.offset {
            Some(offset) => shim::after_cuts(&file, length, cap, offset),
            None => length.saturating_sub(self.tail.unwrap_or(PAGE)),
        };
        let is_line_start = start == 0 || {
            let mut before = [0];
            file.read_exact_at(&mut before, start - 1).is_ok() && before == *b"\n"
        };
        let mut bytes = Vec::new();
        // An offset beyond the end gives an empty piece.
        if start < length {
            file.seek(SeekFrom::Start(start)).map_err(fail)?;
            file.take(PAGE.min(self.limit.unwrap_or(PAGE))).read_to_end(&mut bytes).map_err(fail)?;
        }
        let mut piece = LogPiece { start, more: start + (bytes.len() as u64) < length, length, bytes };
        if let (Some(lines), None) = (self.lines, self.offset) {
            piece.skip(start_of_last_lines(&piece.bytes, lines));
        } else if format.is_some() && !is_line_start {
            piece.skip_begun_line();
        }
        if format.is_some() {
            piece.end_with_a_line(ended);
        } else if !ended || piece.more {
            piece.bytes.truncate(piece.bytes.len() - begun_character(&piece.bytes));
        }
        Ok(piece)
    }
}

/// Piece of a log, in bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct LogPiece {
    /// Offset of the piece in the log.
    start: u64,
    bytes: Vec<u8>,
    /// Length of the whole log.
    length: u64,
    /// True if the log continues after the piece.
    more: bool,
}

impl LogPiece {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn skip(&mut self, bytes: usize) {
        self.start += bytes as u64;
        self.bytes.drain(..bytes);
    }

    /// Removes the rest of a line that began before the piece, unless nothing would be left.
    fn skip_begun_line(&mut self) {
        let next = self.bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        if let Some(next) = next.filter(|next| *next < self.bytes.len()) {
            self.skip(next);
        }
    }

    /// Removes an incomplete last line. A line longer than a piece is kept and shown in parts.
    fn end_with_a_line(&mut self, ended: bool) {
        if ended && !self.more {
            return;
        }
        match self.bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => self.bytes.truncate(at + 1),
            None if self.more => self.bytes.truncate(self.bytes.len() - begun_character(&self.bytes)),
            None => self.bytes.clear(),
        }
    }

    /// Returns the piece as text, in the readable form of a format if one is given.
    fn text(&self, format: Option<Format>) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let Some(format) = format else { return text.into_owned() };
        let screen = Screen::coloured();
        let line =
            |line: &str| shown(line.trim_end(), Some(format), &screen).unwrap_or_else(|| line.to_owned());
        text.split_inclusive('\n').map(line).collect()
    }
}

/// Waits until the file is longer than it was, or shorter because a part was cut. It polls, because the shim, which writes
/// the file, does not announce its writes.
async fn grown(piece: &LogReply) {
    let Some(path) = &piece.path else { return std::future::pending().await };
    loop {
        tokio::time::sleep(GROWTH).await;
        // A file that does not exist yet has not changed.
        let has_changed = |length: u64| length > piece.length.max(piece.next_offset) || length < piece.length;
        if tokio::fs::metadata(path).await.is_ok_and(|file| has_changed(file.len())) {
            return;
        }
    }
}

/// Returns the offset of the last `lines` lines of a text.
fn start_of_last_lines(text: &[u8], lines: u32) -> usize {
    let Some(before) = lines.checked_sub(1) else { return text.len() };
    let whole = text.strip_suffix(b"\n").unwrap_or(text);
    let mut ends = whole.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.nth(before as usize).map_or(0, |(at, _)| at + 1)
}

/// Returns the number of bytes at the end of a text that are the begin of a character without its rest.
fn begun_character(text: &[u8]) -> usize {
    let last = text.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_begun { last.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than any log here has.
    const CAP: u64 = 1 << 20;

    #[test]
    fn the_last_lines_of_a_text_are_found_with_and_without_a_line_end() {
        for (text, lines, last) in [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 1, "c"),
            ("a\nb\n", 9, "a\nb\n"),
            ("a\nb\n", 0, ""),
            ("", 3, ""),
        ] {
            assert_eq!(&text[start_of_last_lines(text.as_bytes(), lines)..], last, "{text:?} {lines}");
        }
    }

    #[test]
    fn a_piece_of_a_live_log_ends_between_two_characters() {
        let text = "aé日".as_bytes();
        let begun: Vec<usize> = (0..=text.len()).map(|end| begun_character(&text[..end])).collect();
        assert_eq!(begun, [0, 0, 1, 0, 1, 2, 0]);
        assert_eq!(begun_character(b"a\xff"), 0, "this byte begins nothing");

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, &text[..4]).unwrap();
        let log = Log::default();
        assert_eq!(log.piece(&path, false, CAP, None).unwrap().bytes, text[..3]);
        assert_eq!(log.piece(&path, true, CAP, None).unwrap().bytes, text[..4]);
    }

    #[test]
    fn an_agent_is_read_in_whole_lines_wherever_a_piece_begins() {
        let output = |words: &str| {
            format!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":"{words}"}}}}"#)
        };
        let call = r#"{"type":"item.started","item":{"type":"command_execution","command":"ls"}}"#;
        let (one, two) = (output("one"), output("two"));
        let text = format!("plain\n{one}\n{call}\n{two}\n{{\"type\":");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, &text).unwrap();
        let format: Format = serde_json::from_str("\"codex-jsonl\"").unwrap();
        let read = |log: &Log, ended| {
            let piece = log.piece(&path, ended, CAP, Some(format)).unwrap();
            (
                piece.text(Some(format)),
                usize::try_from(piece.start).unwrap(),
                usize::try_from(piece.end()).unwrap(),
            )
        };
        let whole = "plain\none\n\u{1b}[36m→ shell ls\u{1b}[0m\ntwo\n";
        let end = text.len() - "{\"type\":".len();
        assert_eq!(
            read(&Log::default(), false),
            (whole.to_owned(), 0, end),
            "the last line is not there yet"
        );
        assert_eq!(read(&Log::default(), true).0, format!("{whole}{{\"type\":"), "nothing more comes");
        // In the middle of a line, and up to where the next piece begins.
        let begin = "plain\n".len();
        let log = Log { offset: Some(2), limit: Some((begin + one.len() + 1 - 2) as u64), ..Log::default() };
        assert_eq!(read(&log, false), ("one\n".to_owned(), begin, begin + one.len() + 1));
        let log = Log { offset: Some(begin as u64), ..Log::default() };
        assert_eq!(read(&log, false).0, whole.strip_prefix("plain\n").unwrap());
        let log = Log { tail: Some(9 + two.len() as u64 + 3), ..Log::default() };
        assert_eq!(read(&log, false).0, "two\n");
        // A line that is longer than a piece is read as it is.
        let log = Log { offset: Some(begin as u64 + 3), limit: Some(10), ..Log::default() };
        assert_eq!(read(&log, false).0, one[3..13]);
    }
}
