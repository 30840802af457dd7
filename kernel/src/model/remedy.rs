//! Remedies of findings: commands of this program, ready to be typed, and advice in words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::id::BoardName;

/// Name of the program, with the space before a command.
const PROGRAM: &str = "supervisor ";

/// Action that helps with a problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    /// Kind of the remedy: `cli_hint`, a command, or `advice`.
    pub kind: String,
    /// Description of the command's effect, or the advice.
    pub label: String,
    /// Details of the remedy.
    pub payload: Payload,
    /// True if this remedy is the first to try.
    pub suggested: bool,
}

/// Details of a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Payload {
    /// Command; none for advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
}

/// Command of this program. Its text works when pasted, with any default board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", from = "String")]
#[schemars(with = "String")]
pub struct CommandLine {
    board: Option<BoardName>,
    arguments: String,
}

impl Remedy {
    /// Creates a remedy from the arguments of a command: the verb and its operands.
    pub fn command(label: &str, arguments: impl Into<String>) -> Self {
        let command = CommandLine { board: None, arguments: arguments.into() };
        let (kind, label) = ("cli_hint".to_owned(), label.to_owned());
        Remedy { kind, label, payload: Payload { command: Some(command) }, suggested: false }
    }

    /// Creates a remedy in words: an action outside of this program, or one with several commands.
    pub fn advice(label: impl Into<String>) -> Self {
        let payload = Payload { command: None };
        Remedy { kind: "advice".to_owned(), label: label.into(), payload, suggested: true }
    }

    /// Marks the remedy as the first to try.
    #[must_use]
    pub fn suggested(self) -> Self {
        Remedy { suggested: true, ..self }
    }

    /// Sets the board of the command. The default board is not named.
    pub fn aim(&mut self, board: &BoardName) {
        if let Some(command) = &mut self.payload.command {
            command.board = Some(board.clone()).filter(|board| *board != BoardName::default());
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.payload.command {
            Some(command) => write!(f, "{}: {command}", self.label),
            None => f.write_str(&self.label),
        }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.board {
            Some(board) => write!(f, "{PROGRAM}--board {board} {}", self.arguments),
            None => write!(f, "{PROGRAM}{}", self.arguments),
        }
    }
}

impl From<CommandLine> for String {
    fn from(command: CommandLine) -> Self {
        command.to_string()
    }
}

impl From<String> for CommandLine {
    fn from(text: String) -> Self {
        let arguments = text.strip_prefix(PROGRAM).unwrap_or(&text).to_owned();
        CommandLine { board: None, arguments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_board_that_it_is_for_and_is_read_back_as_it_was_written() {
        let mut remedy = Remedy::command("unblock it", "unblock t_0123abcd").suggested();
        assert_eq!(remedy.to_string(), "unblock it: supervisor unblock t_0123abcd");
        remedy.aim(&BoardName::default());
        assert_eq!(remedy.to_string(), "unblock it: supervisor unblock t_0123abcd");
        remedy.aim(&"docs".parse().unwrap());
        let json = serde_json::to_value(&remedy).unwrap();
        assert_eq!(json["payload"]["command"], "supervisor --board docs unblock t_0123abcd");
        let back: Remedy = serde_json::from_value(json).unwrap();
        assert_eq!(back.to_string(), remedy.to_string());
    }
}
