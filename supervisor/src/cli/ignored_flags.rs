//! Flags that are accepted but have no effect. Each prints a warning.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// The verb, the flag, and the reason why the flag has no effect.
const IGNORED: [(&[&str], &str, &str); 5] = [
    (&["boards", "delete"], "delete", "the board is deleted for good either way"),
    (&["daemon"], "force", "a daemon in the foreground is the normal case"),
    (&["daemon"], "interval", "what is ready starts at once"),
    (&["tail"], "interval", "events are shown as they happen"),
    (&["watch"], "interval", "events are shown as they happen"),
];

/// Returns a warning for each such flag of a command line.
pub(super) fn warnings(matches: &ArgMatches) -> Vec<String> {
    let mut verb = Vec::new();
    let mut given = matches;
    while let Some((word, below)) = given.subcommand() {
        verb.push(word);
        given = below;
    }
    let said = |flag: &str| {
        matches!(given.try_contains_id(flag), Ok(true))
            && given.value_source(flag) == Some(ValueSource::CommandLine)
    };
    let ignored = IGNORED.iter().filter(|(of, flag, _)| verb == *of && said(flag));
    ignored.map(|(_, flag, why)| format!("--{flag} changes nothing: {why}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    #[test]
    fn every_flag_that_changes_nothing_is_warned_of_and_no_other() {
        for (verb, flag, why) in IGNORED {
            let mut words = [&["supervisor"], verb].concat();
            let takes_task = verb == ["tail"] || verb == ["boards", "delete"];
            words.extend(takes_task.then_some(if verb == ["tail"] { "t_0123abcd" } else { "b" }));
            assert_eq!(warnings(&command().try_get_matches_from(&words).unwrap()), Vec::<String>::new());
            let option = format!("--{flag}");
            words.push(&option);
            words.extend((flag == "interval").then_some("5"));
            let warned = warnings(&command().try_get_matches_from(&words).unwrap());
            assert_eq!(warned, [format!("--{flag} changes nothing: {why}")]);
        }
    }

    #[test]
    fn a_hidden_flag_or_one_that_is_not_needed_is_warned_of() {
        fn walk(command: &clap::Command, verb: &[&str]) {
            for flag in command.get_arguments() {
                let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
                let ignored = flag.is_hide_set() || help.starts_with("Ignored");
                let known =
                    IGNORED.iter().any(|(of, name, _)| *of == verb && *name == flag.get_id().as_str());
                assert_eq!(ignored, known, "{verb:?} {}", flag.get_id());
            }
            for below in command.get_subcommands() {
                walk(below, &[verb, &[below.get_name()]].concat());
            }
        }
        walk(&command(), &[]);
    }
}
