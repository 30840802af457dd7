//! Reports an unparsable command line like all errors: one error, a hint, and JSON if requested. A line without a verb
//! shows the help, as `hermes kanban` does, and is no error.

use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::{compat, failed, foreign_commands, topics};
use crate::output::Output;
use base::failure::Failure;
use base::terminal::{Colour, print};

/// End of the parser's messages; the hint names the right command instead.
const POINTER: &str = "For more information, try '--help'.";

/// Prints clap's help or error.
pub(super) fn answer(error: &Error, words: &[OsString]) -> ExitCode {
    // Help that nobody reads to the end is no failure.
    if !error.use_stderr() {
        drop(error.print());
        return ExitCode::SUCCESS;
    }
    // The flag is searched for by hand, because the line could not be parsed.
    let json = words.iter().any(|word| word == "--json");
    let names_no_verb = matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if names_no_verb && !json {
        let mut command = super::command();
        drop(print(&meant(&mut command, words).render_help().to_string()));
        return ExitCode::SUCCESS;
    }
    let failure = other_word(error, words).unwrap_or_else(|| {
        let failure = failure(&error_text(error, words), words);
        match foreign_commands::value(error, words)
            .map(str::to_owned)
            .or_else(|| in_common(error, words).or_else(|| example(error, words)))
        {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    });
    failed(Output::new(json, Colour::Never), &failure)
}

/// Returns the error for an unknown subcommand. It suggests the equivalent of another program's subcommand, or
/// subcommands with similar names.
fn other_word(error: &Error, words: &[OsString]) -> Option<Failure> {
    if matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::ValueValidation) {
        return foreign_commands::without_task(words);
    }
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    if let Some(known) = foreign_commands::answer(words) {
        return Some(known);
    }
    let mut command = super::command();
    let name = meant(&mut command, words).get_bin_name().unwrap_or("supervisor").to_owned();
    let name = name.strip_suffix(" help").unwrap_or(&name);
    // Clap lists the most similar word last.
    let like = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(like)) => like.as_slice(),
        Some(ContextValue::String(like)) => std::slice::from_ref(like),
        Some(_) | None => &[],
    };
    let like = like.iter().rev().filter(|like| is_like(word, like));
    let mut ways: Vec<String> = like.take(3).map(|word| format!("{name} {word}")).collect();
    let is_help = words.iter().any(|word| word == "help");
    if is_help {
        let topics = topics::names();
        let topics = topics.filter(|topic| is_like(word, topic_word(topic)));
        ways.splice(0..0, topics.take(3).map(|topic| format!("supervisor help {topic}")).collect::<Vec<_>>());
    }
    if ways.is_empty() && is_help {
        // Clap suggests no similar words for an argument of `help`.
        let command = super::command();
        let known =
            command.get_subcommands().map(clap::Command::get_name).filter(|known| is_like(word, known));
        ways.extend(known.take(3).map(|known| format!("supervisor help {known}")));
    }
    ways.push(format!("{name} --help"));
    let failure = if is_help {
        let topics = topics::names().filter(|topic| !topic.contains('/')).collect::<Vec<_>>().join(", ");
        Failure::usage(format!("`{word}` is neither a command nor a topic; the topics are {topics}"))
    } else {
        Failure::usage(format!("there is no command `{word}` of `{name}`"))
    };
    Some(failure.hint(ways.join(", or ")))
}

/// Returns an example for a missing argument of a verb.
fn example(error: &Error, words: &[OsString]) -> Option<String> {
    let lacks = |argument: &str| matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(missing)) if missing.iter().any(|one| one.starts_with(argument)));
    let is_hold = words.get(compat::first_verb(words)).is_some_and(|word| word == "hold");
    (error.kind() == ErrorKind::MissingRequiredArgument && is_hold && lacks("--reason"))
        .then(|| foreign_commands::with_task("hold {task} --reason 'not before the release'", words))
}

/// Returns the error for a line without tasks, if the verb can also select tasks by a filter.
fn in_common(error: &Error, words: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return None;
    }
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let mut command = super::command();
    let verb = meant(&mut command, words);
    let takes = verb
        .get_arguments()
        .any(|argument| argument.get_id() == "dry_run" && argument.get_help_heading().is_some());
    let lacks_tasks = missing.iter().any(|argument| argument.starts_with("<TASK>"));
    (takes && lacks_tasks).then(|| {
        format!(
            "name tasks, or select them with --status, --assignee, --tenant, --search, --since or --failed; {} --help",
            verb.get_bin_name().unwrap_or("supervisor")
        )
    })
}

/// Removes `docs/` and `.md` from a topic, which are often typed as parts of a page's name.
fn topic_word(topic: &str) -> &str {
    topic.strip_prefix("docs/").unwrap_or(topic).trim_end_matches(".md")
}

/// Returns true if a typed word is probably another one: it is the beginning of it, or at most one letter in three
/// differs. Clap's own measure finds almost all short words similar.
fn is_like(typed: &str, like: &str) -> bool {
    let letters = typed.chars().count();
    let is_begun = letters >= 3 && like.starts_with(typed);
    is_begun || strsim::damerau_levenshtein(typed, like) <= (letters / 3).max(1)
}

/// Returns clap's message with two changes: an invalid number is refused with a description of what to write, and the
/// advice to use `--` is kept only where that works.
fn error_text(error: &Error, words: &[OsString]) -> String {
    let mut text = error.render().to_string();
    if let Some((before, from)) = text.split_once("\n\n  tip: to pass ")
        && !is_taken_behind_dashes(error, words)
    {
        let after = from.split_once("\n\n").map(|(_, after)| format!("\n\n{after}")).unwrap_or_default();
        text = format!("{before}{after}");
    }
    if let Some(float) =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<ParseFloatError>())
    {
        return text.replace(&float.to_string(), "write a number, such as 0.5");
    }
    let number = std::error::Error::source(error).and_then(|source| source.downcast_ref::<ParseIntError>());
    let Some(number) = number else { return text };
    let why = match number.kind() {
        IntErrorKind::PosOverflow => "it is too large",
        _ => "write a whole number, such as 10",
    };
    text.replace(&number.to_string(), why)
}

/// Returns true if a command line becomes valid with `--` before the refused word.
fn is_taken_behind_dashes(error: &Error, words: &[OsString]) -> bool {
    let Some(ContextValue::String(refused)) = error.get(ContextKind::InvalidArg) else { return false };
    // `run` takes all words after `--` as its command, so this hint would mislead.
    if words.get(compat::first_verb(words)).is_some_and(|word| word == "run") {
        return false;
    }
    let is_refused = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with(refused.as_str()));
    let Some(at) = words.iter().position(is_refused) else { return false };
    let (before, from) = words.split_at(at);
    let tried = [before, &[OsString::from("--")], from].concat();
    super::command().try_get_matches_from(tried).is_ok()
}

fn failure(text: &str, words: &[OsString]) -> Failure {
    let text = text.trim_end();
    let text = text.strip_suffix(POINTER).unwrap_or(text).trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let mut command = super::command();
    let meant = meant(&mut command, words);
    let name = meant.get_bin_name().unwrap_or("supervisor").to_owned();
    // The usage in clap's error shows the given options as mandatory.
    let text = match text.split_once("\n\nUsage: ") {
        Some((expected, _)) => format!("{expected}\n\n{}", meant.render_usage()),
        None => text.to_owned(),
    };
    Failure::usage(text).hint(format!("{name} --help"))
}

/// Returns the subcommand that a line names, as deep as its words lead.
fn meant<'a>(command: &'a mut clap::Command, words: &[OsString]) -> &'a mut clap::Command {
    // Sets the full name of each subcommand, such as `supervisor boards list`.
    command.build();
    let mut meant = command;
    for word in words.iter().skip(compat::first_verb(words)).filter_map(|word| word.to_str()) {
        if meant.find_subcommand(word).is_none() {
            break;
        }
        meant = meant.find_subcommand_mut(word).unwrap_or_else(|| unreachable!("it was just found"));
    }
    meant
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::exit::Code;

    #[test]
    fn the_hint_names_the_verb_that_was_meant() {
        let words = ["supervisor", "--json", "create", "--nope"].map(OsString::from);
        let text = "error: unexpected argument '--nope' found\n\nFor more information, try '--help'.\n";
        let failure = failure(text, &words);
        assert_eq!(failure.message, "unexpected argument '--nope' found");
        assert_eq!(failure.hint.as_deref(), Some("supervisor create --help"));
        assert_eq!(failure.code, Code::Usage);
    }

    #[test]
    fn who_names_no_task_learns_what_stands_in_the_place_of_tasks() {
        for line in ["cancel --dry-run", "kill", "assign"] {
            let words: Vec<OsString> =
                ["supervisor"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
            let error = crate::cli::command().try_get_matches_from(&words).unwrap_err();
            assert!(in_common(&error, &words).unwrap().contains("--tenant"), "{line}");
        }
        let words = ["supervisor", "promote", "--dry-run"].map(OsString::from);
        let error = crate::cli::command().try_get_matches_from(&words).unwrap_err();
        assert_eq!(in_common(&error, &words), None);
    }

    #[test]
    fn only_words_that_are_like_what_was_typed_are_offered() {
        let hint = |word: &str| {
            let words = ["supervisor", word].map(OsString::from);
            let error = crate::cli::command().try_get_matches_from(&words).unwrap_err();
            other_word(&error, &words).unwrap().hint.unwrap()
        };
        for word in ["images", "pr", "frob"] {
            assert_eq!(hint(word), "supervisor --help", "{word}");
        }
        assert!(hint("lsit").starts_with("supervisor list, or "), "{}", hint("lsit"));
        assert!(hint("creat").starts_with("supervisor create, or "), "{}", hint("creat"));
        let words = ["supervisor", "help", "lanes"].map(OsString::from);
        let error = crate::cli::command().try_get_matches_from(&words).unwrap_err();
        let hint = other_word(&error, &words).unwrap().hint.unwrap();
        assert!(hint.starts_with("supervisor help docs/lanes.md, or "), "{hint}");
        for (word, way) in [
            ("state", "supervisor help states"),
            ("exit", "supervisor help exit-codes"),
            ("config", "supervisor help docs/configuration.md"),
            ("operations", "supervisor help docs/operations.md"),
        ] {
            let words = ["supervisor", "help", word].map(OsString::from);
            let error = crate::cli::command().try_get_matches_from(&words).unwrap_err();
            let failure = other_word(&error, &words).unwrap();
            assert!(failure.hint.unwrap().starts_with(way), "{word}");
            assert!(failure.message.contains("the topics are states, exit-codes"), "{}", failure.message);
        }
    }

    #[test]
    fn the_usage_names_what_the_verb_needs_and_not_what_was_given() {
        let words = ["supervisor", "--root", "/r", "boards", "create", "--switch"].map(OsString::from);
        let error = crate::cli::command().try_get_matches_from(&words).unwrap_err();
        let failure = failure(&error.render().to_string(), &words);
        assert!(
            failure.message.ends_with("Usage: supervisor boards create [OPTIONS] <SLUG>"),
            "{}",
            failure.message
        );
        assert_eq!(failure.hint.as_deref(), Some("supervisor boards create --help"));
    }

    #[test]
    fn a_value_is_advised_to_stand_behind_dashes_only_where_it_is_taken_there() {
        let refused = |words: &[&str]| {
            let words: Vec<OsString> =
                [&["supervisor"], words].concat().into_iter().map(Into::into).collect();
            let error = crate::cli::command().try_get_matches_from(&words).unwrap_err();
            error_text(&error, &words)
        };
        assert!(refused(&["comment", "t_0123abcd", "--- broken"]).contains("tip: to pass"));
        for words in [
            &["edit", "t_0123abcd", "--nope", "x"][..],
            &["create", "x", "--not-before", "-5m"],
            &["run", "-e", "A=1", "--", "env"],
        ] {
            let text = refused(words);
            assert!(!text.contains("tip:") && text.contains("Usage: "), "{text}");
        }
    }

    #[test]
    fn a_number_of_seconds_that_is_none_is_refused_in_words_that_say_what_to_write() {
        let words = ["supervisor", "status", "--watch", "--interval", "abc"].map(OsString::from);
        let error = crate::cli::command().try_get_matches_from(&words).unwrap_err();
        let text = error_text(&error, &words);
        assert!(text.contains("write a number, such as 0.5") && !text.contains("literal"), "{text}");
    }

    #[test]
    fn a_negative_number_is_a_value_like_any_other() {
        for (words, expected) in [
            (
                ["supervisor", "create", "x", "--max-retries", "-5"],
                "invalid value '-5' for '--max-retries <N>'",
            ),
            (
                ["supervisor", "create", "x", "--max-runtime", "-5"],
                "invalid value '-5' for '--max-runtime <DURATION>'",
            ),
            (["supervisor", "list", "--limit", "-5", "--why"], "invalid value '-5' for '--limit <N>'"),
        ] {
            let error = crate::cli::command().try_get_matches_from(words).unwrap_err().render().to_string();
            assert!(error.contains(expected) && !error.contains("tip:"), "{error}");
        }
        let words = ["supervisor", "create", "x", "--priority", "-5"];
        assert!(crate::cli::command().try_get_matches_from(words).is_ok());
    }
}
