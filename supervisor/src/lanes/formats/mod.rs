//! What a worker says about its own ending on its standard output: one format a file, each an ordered look at its lines.
//!
//! All of it is the worker's word. It decides what becomes of its own task and account, within the bounds of a run, and nothing
//! else; a verdict that it gave to the board goes before it. A line has at most 1 MiB and JSON a bounded depth; what is kept of
//! a text is cut. What a reader does not understand it passes over.

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

pub(crate) use self::hermes::usage_line;
pub(crate) use self::readable::{Readable, shown};
pub(super) use self::service::by_status;

use std::fmt;
use std::time::Duration;

use kernel::{OwnLimit, Spent, Timestamp};
use serde::{Deserialize, Serialize};
use shim::rundir::Stdout;

/// More of a final message is cut off.
const MESSAGE_BYTES: usize = 4096;

/// More of what kept a worker from going on is cut off.
const TROUBLE_BYTES: usize = 300;

/// More of the name of a session or a model is cut off.
const NAME_BYTES: usize = 128;

/// The formats that there are: the name in a lane's file, and the function that reads it. A new one is a file and a line here.
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

/// It says nothing of requests that are tried again.
fn never(_: &Stdout) -> bool {
    false
}

/// One format.
struct Reader {
    name: &'static str,
    read: fn(&Stdout) -> Said,
    /// Whether its service refuses it at the moment, and it tries again; none where nothing is said before the end.
    refused: Option<fn(&Stdout) -> bool>,
    /// What a person reads of a line; none where its lines are read as they are.
    readable: Option<fn(&serde_json::Value) -> Vec<Readable>>,
}

/// What the standard output of a lane's workers is. Text for people is the default: its end is the final message.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub(crate) struct Format(&'static Reader);

impl Format {
    /// Reads what a worker has said.
    pub(super) fn read(self, stdout: &Stdout) -> Said {
        (self.0.read)(stdout)
    }
}

impl Format {
    /// Whether its lines say something before the end.
    pub(super) fn is_heard(self) -> bool {
        self.0.refused.is_some()
    }

    /// Whether it is a stream of events, which a person does not read as it is.
    pub(crate) fn is_of_events(self) -> bool {
        self.0.readable.is_some()
    }

    /// What a person reads of a line of the log; none where it is read as it is: in another form, or not the program's.
    pub(crate) fn readable(self, line: &str) -> Option<Vec<Readable>> {
        let event = serde_json::from_str(line).ok().filter(serde_json::Value::is_object)?;
        Some((self.0.readable?)(&event))
    }

    /// Whether its service refuses the worker at the moment, and it tries again.
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

/// No format has this name.
#[derive(Debug, thiserror::Error)]
#[error("there is no format `{name}` for standard output; the formats are: {}", FORMATS.iter().map(|reader| reader.name).collect::<Vec<_>>().join(", "))]
pub(crate) struct UnknownFormat {
    name: String,
}

impl TryFrom<String> for Format {
    type Error = UnknownFormat;

    fn try_from(name: String) -> Result<Self, UnknownFormat> {
        FORMATS.iter().find(|reader| reader.name == name).map(Format).ok_or(UnknownFormat { name })
    }
}

/// What a worker has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// How it ended.
    pub(super) finish: Finish,
    /// Its final message.
    pub(super) message: Option<String>,
    /// What kept it from going on, in its words.
    pub(super) trouble: Option<String>,
    /// What it says that it has used.
    pub(super) spent: Spent,
}

/// How a worker ended, in its own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Finish {
    /// It did what it could.
    Well,
    /// It did not end by itself.
    #[default]
    Unsaid,
    /// Something kept it from going on.
    Failed,
    /// Its service refuses it, until a time where it was told one.
    RateLimited(Option<Reset>),
    /// Its service does not know it, or it has no login.
    NotLoggedIn,
    /// It met a limit that its lane has set for it.
    OwnLimit(OwnLimit),
    /// Its service fails, or cannot be reached.
    Unavailable,
}

/// When a service serves a worker again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reset {
    /// At a time.
    At(Timestamp),
    /// So long after the end of the run.
    After(Duration),
}

/// A final message as the board gets it: without blank edges, and its beginning where it is long.
fn final_message(text: &str) -> Option<String> {
    cut(text, MESSAGE_BYTES)
}

/// What kept a worker from going on, as the board gets it: one line.
fn trouble(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    cut(line, TROUBLE_BYTES)
}

/// The name of a session or a model.
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

    /// What a worker says in a format.
    pub(super) fn said(format: &str, output: &[u8]) -> Said {
        written(output, |stdout| Format::try_from(format.to_owned()).unwrap().read(stdout))
    }

    /// Whether the service of a worker refuses it, by what it has said so far in a format.
    pub(super) fn is_refused(format: &str, output: &[u8]) -> bool {
        written(output, |stdout| Format::try_from(format.to_owned()).unwrap().is_refused(stdout))
    }

    fn written<T>(output: &[u8], read: impl FnOnce(&Stdout) -> T) -> T {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("stdout"), output).unwrap();
        let run = RunDir::open(place.path()).unwrap();
        read(&run.stdout(&ExitRecord::of(Cause::Exited, 1)).unwrap())
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
        let hostile: [&[u8]; 7] = [
            b"",
            b"\xff\xfe\x00\n\x00",
            deep.as_bytes(),
            nested.as_bytes(),
            b"null\n1\n\"x\"\n[]\n{}\n{\"type\":null}\n{\"type\":{}}",
            b"{\"type\":\"result\",\"type\":\"result\"}",
            b"{\"type\":\"nothing\",\"usage\":{\"input_tokens\":-1}}",
        ];
        for reader in FORMATS.iter().filter(|reader| !["text", "hermes"].contains(&reader.name)) {
            for output in hostile {
                let told = said(reader.name, output);
                assert_eq!(told, Said::default(), "{}: {}", reader.name, String::from_utf8_lossy(output));
            }
        }
    }

    #[test]
    fn what_is_kept_of_a_text_is_cut_and_of_one_line() {
        assert_eq!(final_message(&"é".repeat(100_000)).unwrap().len(), MESSAGE_BYTES);
        assert_eq!(trouble("\n  first \nsecond"), Some("first".to_owned()));
        assert_eq!((name(" a "), name("a\u{1b}b"), name("  ")), (Some("a".to_owned()), None, None));
    }
}
