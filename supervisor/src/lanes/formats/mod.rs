//! What a worker says about its own ending on its standard output: one format a file, each an ordered look at its lines.
//!
//! All of it is the worker's word. It decides what becomes of its own task and account, within the bounds of a run, and nothing
//! else; a verdict that it gave to the board goes before it.

mod claude_stream_json;

use kernel::Timestamp;
use serde::{Deserialize, Serialize};
use shim::rundir::Stdout;

/// More of a final message is cut off.
const MESSAGE_BYTES: usize = 4096;

/// What the standard output of a lane's workers is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// Text for people. Its end is the final message.
    #[default]
    Text,
    /// One JSON object a line, as `claude -p --output-format stream-json` writes it.
    ClaudeStreamJson,
}

/// What a worker has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// How it came to its end.
    pub(super) finish: Finish,
    /// Its final message.
    pub(super) message: Option<String>,
}

/// How a worker came to its end, as it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Finish {
    /// It did what it could.
    Well,
    /// It did not come to an end of its own.
    #[default]
    Unsaid,
    /// Something kept it from going on.
    Failed,
    /// Its service refuses it, until a time where it was told one.
    RateLimited(Option<Timestamp>),
}

impl Format {
    /// Reads what a worker has said.
    pub(super) fn read(self, stdout: &Stdout) -> Said {
        match self {
            // Text has no word for an end: the exit code alone tells. As much of it is kept as an exit record has.
            Format::Text => {
                let message = Some(stdout.tail().trim().to_owned()).filter(|tail| !tail.is_empty());
                Said { finish: Finish::Well, message }
            }
            Format::ClaudeStreamJson => claude_stream_json::read(stdout),
        }
    }
}

/// A final message as the board gets it: without blank edges, and its beginning where it is long.
fn final_message(text: &str) -> Option<String> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(MESSAGE_BYTES)];
    Some(text.to_owned()).filter(|text| !text.is_empty())
}
