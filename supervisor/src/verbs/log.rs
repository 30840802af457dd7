//! `log`: what a run wrote, piece by piece; it can wait for the next one. `logs` and `run` show it.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use kernel::{RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::api::{ANSWERED, Audience, Call, Effect, Verb};
use crate::exit::Code;
use crate::failure::Failure;
use crate::lanes::Format;

/// The most that one call returns.
const PAGE: u64 = 1 << 20;
/// The longest that one call waits.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The pause between two looks at the length of a file.
const GROWTH: Duration = Duration::from_millis(50);
/// The pause between two looks at a run whose end is announced to another process.
const UNANNOUNCED: Duration = Duration::from_secs(1);

/// Returns a piece of what a run has written
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Log {
    /// The task
    pub(crate) task_id: Option<TaskId>,
    /// Which run; the latest where none is named
    pub(crate) run: Option<RunId>,
    /// Start at this byte
    pub(crate) offset: Option<u64>,
    /// Without an offset: only the last bytes, at most this many
    pub(crate) tail: Option<u64>,
    /// Without an offset: only the last lines, at most this many
    pub(crate) lines: Option<u32>,
    /// Wait up to this many seconds until there is a text or the run has ended
    pub(crate) wait: u64,
}

/// A piece of a run's log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Logged {
    pub(crate) task_id: TaskId,
    /// The run; none where the task has not been run yet.
    pub(crate) run_id: Option<RunId>,
    pub(crate) path: Option<String>,
    /// Where this piece starts, in bytes.
    pub(crate) offset: u64,
    /// Where the next piece starts.
    pub(crate) next_offset: u64,
    /// Whether the run has ended, so that nothing more comes.
    pub(crate) ended: bool,
    /// The form of its standard output, which is among the text; none where its lane is not known any more.
    #[serde(default)]
    pub(crate) stdout: Option<Format>,
    /// The text; bytes that are no UTF-8 are shown as U+FFFD.
    pub(crate) text: String,
}

impl Logged {
    /// What a task wrote that nobody has run.
    fn of_no_run(task_id: TaskId) -> Self {
        Logged {
            task_id,
            run_id: None,
            path: None,
            offset: 0,
            next_offset: 0,
            ended: false,
            stdout: None,
            text: String::new(),
        }
    }
}

impl Verb for Log {
    const NAME: &'static str = "log";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Read;
    const MEMBERS: bool = true;
    type Reply = Logged;

    fn answered_within(&self) -> Duration {
        ANSWERED + Duration::from_secs(self.wait).min(LONGEST_WAIT)
    }

    async fn run(self, call: Call) -> Result<Logged, Failure> {
        let until = Instant::now() + Duration::from_secs(self.wait).min(LONGEST_WAIT);
        let mut news = call.board()?.changes();
        loop {
            news.mark_unchanged();
            let piece = self.look(&call).await?;
            let now = Instant::now();
            if piece.ended || !piece.text.is_empty() || call.board()?.is_closing() || now >= until {
                return Ok(piece);
            }
            // The end of a run is a commit; without a daemon another process makes it.
            let again = if call.service.daemon().is_some() { until } else { until.min(now + UNANNOUNCED) };
            // Cancel-safe: a change that is missed by the growth of the file is seen by the next look.
            tokio::select! {
                changed = news.changed() => drop(changed),
                () = grown(&piece) => {}
                () = tokio::time::sleep_until(again) => {}
            }
        }
    }
}

impl Log {
    /// What there is now.
    async fn look(&self, call: &Call) -> Result<Logged, Failure> {
        let id = super::texts::named(self.task_id.clone())?;
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
            None => match runs.last() {
                Some(run) => run,
                None => return Ok(Logged::of_no_run(task_id)),
            },
        };
        // The path is derived, never taken from a request.
        let path = call.service.root().log(call.board()?.name(), &task_id, run.id);
        let ended = run.ended_at.is_some();
        let (roster, config) = (call.service.roster(), call.service.config());
        let lane = run.profile.as_ref().and_then(|profile| roster.resolve(profile, None, &config).ok());
        let stdout = lane.map(|resolved| resolved.lane.output());
        let (offset, bytes) = self.piece(&path, ended)?;
        Ok(Logged {
            run_id: Some(run.id),
            path: Some(path.display().to_string()),
            offset,
            next_offset: offset + bytes.len() as u64,
            ended,
            stdout,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            task_id,
        })
    }

    /// Where the piece starts, and its bytes. They end between two characters, unless nothing more comes.
    fn piece(&self, path: &Path, ended: bool) -> Result<(u64, Vec<u8>), Failure> {
        let fail = |e: std::io::Error| Failure::file("read the log", path, &e);
        let mut file = match std::fs::File::open(path) {
            Ok(file) => file,
            // A run that has not started yet has written nothing.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((0, Vec::new())),
            Err(e) => return Err(fail(e)),
        };
        let length = file.metadata().map_err(fail)?.len();
        let mut start = self.offset.unwrap_or_else(|| length.saturating_sub(self.tail.unwrap_or(PAGE)));
        file.seek(SeekFrom::Start(start)).map_err(fail)?;
        let mut bytes = Vec::new();
        file.take(PAGE).read_to_end(&mut bytes).map_err(fail)?;
        if let (Some(lines), None) = (self.lines, self.offset) {
            let cut = start_of_last_lines(&bytes, lines);
            start += cut as u64;
            bytes.drain(..cut);
        }
        if !ended || bytes.len() as u64 == PAGE {
            bytes.truncate(bytes.len() - begun_character(&bytes));
        }
        Ok((start, bytes))
    }
}

/// Returns when there is more in the file than a piece has. The shim that writes it announces nothing.
async fn grown(piece: &Logged) {
    let Some(path) = &piece.path else { return std::future::pending().await };
    loop {
        tokio::time::sleep(GROWTH).await;
        // A file that is not there yet has nothing.
        if tokio::fs::metadata(path).await.is_ok_and(|file| file.len() > piece.next_offset) {
            return;
        }
    }
}

/// Where the last `lines` lines of a text begin.
fn start_of_last_lines(text: &[u8], lines: u32) -> usize {
    let Some(before) = lines.checked_sub(1) else { return text.len() };
    let whole = text.strip_suffix(b"\n").unwrap_or(text);
    let mut ends = whole.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.nth(before as usize).map_or(0, |(at, _)| at + 1)
}

/// How many bytes at the end of a text are the beginning of a character.
fn begun_character(text: &[u8]) -> usize {
    let last = text.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_begun { last.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(log.piece(&path, false).unwrap(), (0, text[..3].to_vec()));
        assert_eq!(log.piece(&path, true).unwrap(), (0, text[..4].to_vec()));
    }
}
