//! A command line that cannot be understood is refused as everything else is: one error, a hint, and JSON where asked for.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{Error, ErrorKind};

use super::Output;
use crate::exit::Code;
use crate::failure::Failure;
use crate::terminal::Colour;

/// How the parser ends its messages; the hint says the same of the right command.
const POINTER: &str = "For more information, try '--help'.";

/// Prints what the parser has to say: help that was asked for, or a refusal.
pub(super) fn answer(error: &Error, words: &[OsString]) -> ExitCode {
    let help = !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if help {
        // Help that nobody reads to the end is no failure.
        drop(error.print());
        return ExitCode::from(if error.use_stderr() { Code::Usage.exit() } else { 0 });
    }
    // The flag is looked for by hand: the line as a whole has no meaning.
    let json = words.iter().any(|word| word == "--json");
    let failure = failure(&error.render().to_string(), words);
    Output { json, colour: Colour::Never }.fail(&failure);
    ExitCode::from(failure.code.exit())
}

fn failure(text: &str, words: &[OsString]) -> Failure {
    let text = text.trim_end();
    let text = text.strip_suffix(POINTER).unwrap_or(text).trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let command = super::command();
    let verb = words
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .find(|word| command.find_subcommand(word).is_some())
        .map(|verb| format!(" {verb}"))
        .unwrap_or_default();
    Failure::usage(text).hint(format!("supervisor{verb} --help"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_the_verb_that_was_meant() {
        let words = ["supervisor", "--json", "create", "--nope"].map(OsString::from);
        let text = "error: unexpected argument '--nope' found\n\nFor more information, try '--help'.\n";
        let failure = failure(text, &words);
        assert_eq!(failure.message, "unexpected argument '--nope' found");
        assert_eq!(failure.hint.as_deref(), Some("supervisor create --help"));
        assert_eq!(failure.code, Code::Usage);
    }
}
