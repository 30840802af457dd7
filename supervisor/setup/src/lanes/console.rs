//! Reads `terminal` and `session` of a lane's file: the program's terminal with its initial size, and the form in
//! which the program takes messages.

use serde::Deserialize;
use shim::rundir::{Form as Conversing, TerminalSize};

use super::formats::Format;
use super::lane::Prompt;
use super::sessions::Wrong;

const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };

#[derive(Deserialize)]
#[serde(untagged, expecting = "it is true, or a size as \"120x40\": columns, then lines")]
pub(super) enum TerminalFile {
    Wanted(bool),
    Sized(String),
}

impl TerminalFile {
    /// Checks the terminal against the other settings of the program's streams.
    pub(super) fn check(
        self,
        prompt: Prompt,
        form: Option<Conversing>,
        stdout: Format,
    ) -> Result<Option<TerminalSize>, Wrong> {
        let wrong = |message: String| Err(Wrong { key: "terminal", words: "terminal", message });
        let size = match self {
            TerminalFile::Wanted(false) => return Ok(None),
            TerminalFile::Wanted(true) => USUAL,
            TerminalFile::Sized(text) => match size(&text) {
                Some(size) => size,
                None => {
                    return wrong(format!("`{text}` is not a size such as \"120x40\": columns, then lines"));
                }
            },
        };
        if form.is_some() {
            return wrong(
                "a program with a `session` speaks to the supervisor, and people type at a terminal"
                    .to_owned(),
            );
        }
        match prompt {
            Prompt::Stdin | Prompt::Context => wrong(
                "its standard input is the terminal: prompt = \"argument\", \"file\" or \"body-file\""
                    .to_owned(),
            ),
            Prompt::File | Prompt::Argument | Prompt::BodyFile if stdout != Format::default() => {
                wrong("what it writes is for people: leave `stdout` out".to_owned())
            }
            Prompt::File | Prompt::Argument | Prompt::BodyFile => Ok(Some(size)),
        }
    }
}

/// Checks the form of messages against the other settings of the program's streams.
pub(super) fn spoken(
    form: Option<Conversing>,
    prompt: Prompt,
    stdout: Format,
) -> Result<Option<Conversing>, Wrong> {
    let wrong = |message: String| Err(Wrong { key: "session", words: "session", message });
    let Some(form) = form else { return Ok(None) };
    let spoken = match form {
        Conversing::StreamJson => "claude-stream-json",
        Conversing::AppServer => "codex-app-server",
        Conversing::Acp => "acp",
    };
    if prompt != Prompt::Stdin {
        return wrong("its prompt is the first message on standard input: leave `prompt` out".to_owned());
    }
    if stdout.to_string() != spoken {
        return wrong(format!("its program answers in one format: stdout = \"{spoken}\""));
    }
    Ok(Some(form))
}

fn size(text: &str) -> Option<TerminalSize> {
    let (columns, rows) = text.split_once('x')?;
    let within = |text: &str| text.parse().ok().filter(|number| (2..=1000).contains(number));
    Some(TerminalSize { rows: within(rows)?, columns: within(columns)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_columns_and_lines() {
        assert_eq!(size("120x40"), Some(TerminalSize { rows: 40, columns: 120 }));
        for text in ["", "120", "x", "120x", "1x40", "120x1001", "-1x40", "120x40x2", "99999x40"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
