//! Reads a worker's standard output for its own account of its ending: one format a file, each an ordered pass over
//! the lines.
//!
//! All of it is the worker's claim. Within the limits of a run it affects the worker's own task and account, and
//! nothing else; a verdict on the board takes precedence. A line has at most 1 MiB, apart from long values, which are
//! cut, and JSON a bounded depth; stored texts are cut. A bad character costs only itself ([`lenient`]). Lines that a
//! reader does not understand are skipped.

mod acp;
mod claude_stream_json;
mod codex_app_server;
mod codex_jsonl;
mod events;
#[cfg(test)]
mod fuzz_tests;
mod gemini;
mod hermes;
mod opencode_jsonl;
mod readable;
mod service;
mod text;

pub use self::hermes::usage_line;
pub(super) use self::readable::Readable;
pub use self::readable::shown;
pub(super) use self::service::by_status;

use std::fmt;
use std::time::Duration;

use kernel::{OwnLimit, Spent, Timestamp};
use serde::{Deserialize, Serialize};
use shim::lenient;
use shim::rundir::Stdout;

/// Limit on a final message, in bytes; the rest is cut off.
const MESSAGE_BYTES: usize = 4096;

/// Limit on the reason for a failure, in bytes; the rest is cut off.
const TROUBLE_BYTES: usize = 300;

/// Limit on the name of a session or a model, in bytes; the rest is cut off.
const NAME_BYTES: usize = 128;

/// All formats: the name in a lane's file, and the functions that read it. A new format is a file and an entry here.
static FORMATS: [Reader; 9] = [
    Reader { name: "text", read: text::read, refused: None, readable: None },
    Reader {
        name: "claude-stream-json",
        read: claude_stream_json::read,
        refused: Some(claude_stream_json::is_refused),
        readable: Some(readable::claude),
    },
    Reader {
        name: "codex-jsonl",
        read: codex_jsonl::read,
        refused: Some(codex_jsonl::is_refused),
        readable: Some(readable::codex),
    },
    Reader {
        name: "codex-app-server",
        read: codex_app_server::read,
        refused: Some(codex_app_server::is_refused),
        readable: Some(readable::codex_app_server),
    },
    Reader { name: "acp", read: acp::read, refused: Some(never), readable: Some(readable::acp) },
    Reader {
        name: "opencode-jsonl",
        read: opencode_jsonl::read,
        refused: Some(never),
        readable: Some(readable::opencode),
    },
    Reader {
        name: "gemini-stream-json",
        read: gemini::read_stream,
        refused: Some(never),
        readable: Some(readable::gemini),
    },
    Reader { name: "hermes", read: hermes::read, refused: None, readable: None },
    Reader { name: "gemini-json", read: gemini::read_document, refused: None, readable: None },
];

/// For formats that do not report retries.
fn never(_: &Stdout) -> bool {
    false
}

/// A format by name.
struct Reader {
    name: &'static str,
    read: fn(&Stdout) -> WorkerReport,
    /// Reports whether the service currently refuses the worker while it retries; none if the format reveals nothing
    /// before the end.
    refused: Option<fn(&Stdout) -> bool>,
    /// Converts an event for a person; none if lines are shown unchanged.
    readable: Option<fn(&serde_json::Value) -> Vec<Readable>>,
}

/// Format of the standard output of a lane's workers. The default is text for people, whose end is the final message.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub struct Format(&'static Reader);

impl Format {
    /// Reads a worker's output.
    pub(super) fn read(self, stdout: &Stdout) -> WorkerReport {
        (self.0.read)(stdout)
    }
}

impl Format {
    /// Returns true if the output reveals something before the end.
    pub(super) fn is_heard(self) -> bool {
        self.0.refused.is_some()
    }

    /// True for a stream of events, which must be converted for people.
    pub fn is_of_events(self) -> bool {
        self.0.readable.is_some()
    }

    /// Converts a line of the log for a person. None if the line is shown unchanged: it has another form, or is not
    /// the program's.
    pub fn readable(self, line: &str) -> Option<Vec<Readable>> {
        let event = lenient::read(line.as_bytes()).filter(serde_json::Value::is_object)?;
        Some((self.0.readable?)(&event))
    }

    /// Returns true if the service currently refuses the worker while it retries.
    pub(super) fn is_refused(self, so_far: &Stdout) -> bool {
        self.0.refused.is_some_and(|refused| refused(so_far))
    }
}

impl Default for Format {
    fn default() -> Self {
        Format(&FORMATS[0])
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl From<Format> for &'static str {
    fn from(format: Format) -> Self {
        format.0.name
    }
}

/// Error: no format has this name.
#[derive(Debug, thiserror::Error)]
#[error("there is no format `{name}` for standard output; the formats are: {}", FORMATS.iter().map(|reader| reader.name).collect::<Vec<_>>().join(", "))]
pub struct UnknownFormat {
    name: String,
}

impl TryFrom<String> for Format {
    type Error = UnknownFormat;

    fn try_from(name: String) -> Result<Self, UnknownFormat> {
        FORMATS.iter().find(|reader| reader.name == name).map(Format).ok_or(UnknownFormat { name })
    }
}

/// A worker's account of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerReport {
    /// Ending.
    pub(super) finish: Finish,
    pub(super) message: Option<String>,
    /// Reason for a failure, in the agent's words.
    pub(super) trouble: Option<String>,
    /// Use, as the agent reports it.
    pub(super) spent: Spent,
}

/// Ending of a worker, by its own account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Finish {
    /// The worker finished.
    Well,
    /// No ending reported.
    #[default]
    Unsaid,
    Failed,
    /// The service refuses it, until a time if one was named.
    RateLimited(Option<Reset>),
    /// The service refuses its login, or it has none.
    NotLoggedIn(Refuser),
    /// The worker met a limit that its lane sets.
    OwnLimit(OwnLimit),
    /// The service fails or is unreachable.
    Unavailable,
}

/// Author of the reply by which a worker has no login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refuser {
    /// The service: no reply of a run's proxy has this form.
    Service,
    /// The service, the run's proxy or the agent itself.
    Unclear,
}

/// Time at which a service accepts a worker again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reset {
    /// Absolute time.
    At(Timestamp),
    /// Time after the end of the run.
    After(Duration),
}

/// Returns a final message for the board: trimmed, and cut to its beginning.
fn final_message(text: &str) -> Option<String> {
    cut(text, MESSAGE_BYTES)
}

/// Returns the reason for a failure for the board: its first line that is not blank, cut.
fn trouble(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    cut(line, TROUBLE_BYTES)
}

/// Returns the name of a session or a model, cut; none if it has control characters.
fn name(text: &str) -> Option<String> {
    cut(text, NAME_BYTES).filter(|name| !name.contains(char::is_control))
}

fn cut(text: &str, bytes: usize) -> Option<String> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(bytes)];
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shim::rundir::{Cause, ExitRecord, RunDir};

    /// Reads an output in a format.
    pub(super) fn report_of(format: &str, output: &[u8]) -> WorkerReport {
        written(output, |stdout| Format::try_from(format.to_owned()).unwrap().read(stdout))
    }

    /// Returns true if the output so far reports a refusing service, in a format.
    pub(super) fn is_refused(format: &str, output: &[u8]) -> bool {
        written(output, |stdout| Format::try_from(format.to_owned()).unwrap().is_refused(stdout))
    }

    fn written<T>(output: &[u8], read: impl FnOnce(&Stdout) -> T) -> T {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("stdout"), output).unwrap();
        let run = RunDir::open(place.path()).unwrap();
        read(&run.stdout(&ExitRecord::with_cause(Cause::Exited, 1)).unwrap())
    }

    #[test]
    fn a_format_has_one_name_and_an_unknown_one_is_refused_with_those_that_there_are() {
        for reader in &FORMATS {
            let json = format!("\"{}\"", reader.name);
            let format: Format = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&format).unwrap(), json);
        }
        let unknown = serde_json::from_str::<Format>("\"yaml\"").unwrap_err().to_string();
        assert!(unknown.contains("`yaml`") && unknown.contains("text, claude-stream-json"), "{unknown}");
    }

    #[test]
    fn output_without_sense_says_nothing_in_any_format_of_events() {
        let deep = "[".repeat(100_000);
        let nested = format!("{{\"type\":\"result\",\"result\":{deep}");
        let hostile: [&[u8]; 6] = [
            b"",
            b"\xff\xfe\x00\n\x00",
            deep.as_bytes(),
            nested.as_bytes(),
            b"null\n1\n\"x\"\n[]\n{}\n{\"type\":null}\n{\"type\":{}}",
            b"{\"type\":\"nothing\",\"usage\":{\"input_tokens\":-1}}",
        ];
        for reader in FORMATS.iter().filter(|reader| !["text", "hermes"].contains(&reader.name)) {
            for output in hostile {
                let report = report_of(reader.name, output);
                assert_eq!(
                    report,
                    WorkerReport::default(),
                    "{}: {}",
                    reader.name,
                    String::from_utf8_lossy(output)
                );
            }
        }
    }

    #[test]
    fn a_bad_character_or_a_long_text_costs_neither_the_ending_nor_the_cost() {
        let first_line = r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#;
        let long = "x".repeat(3 * 1024 * 1024);
        for (text, message) in [
            (&br"all is done \ud83d"[..], "all is done \u{fffd}".to_owned()),
            (b"all is done \xff", "all is done \u{fffd}".to_owned()),
            (br#"all is done","num_turns":NaN,"result":"really"#, "really".to_owned()),
            (long.as_bytes(), "x".repeat(MESSAGE_BYTES)),
        ] {
            let ended = br#"{"type":"result","subtype":"success","is_error":false,"result":""#;
            let cost = br#"","total_cost_usd":0.25,"usage":{"input_tokens":5}}"#;
            let output =
                [b"\x1b[?2004h", first_line.as_bytes(), b"\n", ended, text, cost, b"\x1b[?2004l\n"].concat();
            let report = report_of("claude-stream-json", &output);
            assert_eq!((report.finish, report.message), (Finish::Well, Some(message)));
            assert_eq!((report.spent.cost_micros, report.spent.input_tokens), (Some(250_000), 5));
            assert_eq!(report.spent.session.as_deref(), Some("s"));
        }
        let codex = br#"{"type":"thread.started","thread_id":"t"}
{"type":"item.completed","item":{"type":"agent_message","text":"done \ud83d"}}
{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":7}}"#;
        let report = report_of("codex-jsonl", codex);
        assert_eq!((report.message.as_deref(), report.spent.output_tokens), (Some("done \u{fffd}"), 7));
        let gemini = report_of("gemini-json", b"\xef\xbb\xbf{\"response\":\"done \\ud83d\",\"stats\":{}}");
        assert_eq!(gemini.message.as_deref(), Some("done \u{fffd}"));
    }

    #[test]
    fn what_is_kept_of_a_text_is_cut_and_of_one_line() {
        assert_eq!(final_message(&"é".repeat(100_000)).unwrap().len(), MESSAGE_BYTES);
        assert_eq!(trouble("\n  first \nsecond"), Some("first".to_owned()));
        assert_eq!((name(" a "), name("a\u{1b}b"), name("  ")), (Some("a".to_owned()), None, None));
    }
}
