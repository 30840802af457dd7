//! `help TOPIC`: texts about subjects that concern several commands.

use std::borrow::Cow;
use std::ffi::OsString;

use super::{compat, handbook};

/// Topic with its name, its subject and its text.
struct Topic {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

const TOPICS: [Topic; 5] = [
    Topic {
        name: "states",
        about: "the states of a task, and how each one is left",
        text: "\
triage     an idea that has to be specified      supervisor promote TASK
todo       waits for other tasks                 supervisor promote TASK --force
scheduled  waits for a time or another attempt   supervisor unblock TASK
ready      may start when there is a slot        supervisor list --why
running    a worker works on it                  supervisor logs -f TASK
review     its work waits for check or approval  supervisor approve TASK
blocked    asks a question                       supervisor answer TASK 1
           gave up, or waits for something else  supervisor unblock TASK
done       finished                              supervisor reopen TASK
archived   hidden, with its history              supervisor unarchive TASK

`supervisor show TASK` says what a task waits for. `supervisor retry` does what
`unblock` does and forgets how often a task was blocked. It reopens done tasks.
",
    },
    Topic {
        name: "exit-codes",
        about: "what the exit codes of commands mean",
        text: "\
0   ok
1   the operation failed; status: something keeps the daemon from its work
2   the request is invalid
3   what was named does not exist; status: no daemon runs
4   its state forbids this
69  this needs a daemon, and none answers
75  valid, but not now: locked, disk full, not ended in time
77  this caller may not do this

run, wait, dispatch, attach TASK, tail and logs --follow exit as the work did:
0   done
5   a person has to act
124 it took too long
128 and a number: a signal ended it
130 interrupted: the task goes on
N   the exit code of the command, else 1
",
    },
    Topic {
        name: "times",
        about: "how times and durations are written",
        text: "\
Durations: 90 (seconds), 30s, 5m, 2h, 1h 30m, 1d.
Times: a duration from now (2h), 'tomorrow 9am', '2026-11-23 09:00', an RFC 3339
time, or epoch seconds. --since takes a duration as one before now; that of
events and watch is the id of an event. Local times are those of TZ, else of the
host.
",
    },
    Topic {
        name: "ids",
        about: "how tasks and runs are named",
        text: "\
A task is named by its id, such as t_0123abcd, or by a beginning of it that no
other id has: supervisor show t_01. The `t_` may be left out:
supervisor show 01. A run is named by its number, which `supervisor runs TASK`
shows. Inside a run, its own task may be left out.
",
    },
    Topic {
        name: "environment",
        about: "the variables that commands read",
        text: "\
SUPERVISOR_ROOT      as --root
SUPERVISOR_BOARD     as --board
SUPERVISOR_TENANT    as --tenant of create and run
NO_COLOR, COLUMNS    whether to colour, and how wide tables are
RUST_LOG             what the daemon logs, such as debug
EDITOR, VISUAL       what edit and profile edit open

A worker has others: `supervisor run env` shows them.
",
    },
];

/// Name of the topic that lists the pages of the documentation.
const PAGES: &str = "docs";

/// Returns the text of the topic or page that a command line requests; none for any other command line.
pub(super) fn asked(words: &[OsString]) -> Option<Cow<'static, str>> {
    let mut words = words.iter().skip(compat::first_verb(words)).map(|word| word.to_str());
    if words.next()? != Some("help") {
        return None;
    }
    let name = words.next()??;
    if name == PAGES {
        return Some(handbook::listed().into());
    }
    let topic = TOPICS.iter().find(|topic| topic.name == name).map(|topic| topic.text);
    topic.or_else(|| handbook::page(name)).map(Cow::Borrowed)
}

/// Returns the names of all topics and pages, topics first.
pub(super) fn names() -> impl Iterator<Item = String> {
    let topics = TOPICS.iter().map(|topic| topic.name.to_owned());
    topics.chain([PAGES.to_owned()]).chain(handbook::names())
}

/// Returns the topics, one per line, for the help of the whole program.
pub(super) fn listed() -> String {
    let line = |topic: &Topic| format!("  supervisor help {:<12}  {}\n", topic.name, topic.about);
    let pages = Topic { name: PAGES, about: "the pages of the documentation", text: "" };
    TOPICS.iter().chain([&pages]).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_no_command_fits_a_terminal_and_names_commands_that_there_are() {
        let command = crate::cli::command();
        for Topic { name, text, .. } in TOPICS {
            assert!(command.find_subcommand(name).is_none(), "{name} is a command");
            let shown = asked(&["supervisor", "--json", "help", name].map(OsString::from));
            assert_eq!(shown.as_deref(), Some(text));
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{line}");
                let verbs = line.match_indices("supervisor ").filter_map(|(at, word)| {
                    line[at + word.len()..].split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next()
                });
                for verb in verbs {
                    assert!(command.find_subcommand(verb).is_some(), "there is no `{verb}`");
                }
            }
        }
        assert_eq!(asked(&["supervisor", "help", "list"].map(OsString::from)), None);
        let page = asked(&["supervisor", "help", "docs/lanes.md"].map(OsString::from)).unwrap();
        assert!(page.starts_with("# Lanes"), "{page:.40}");
        let pages = asked(&["supervisor", "help", "docs"].map(OsString::from)).unwrap();
        assert!(pages.contains("supervisor help docs/lanes.md "), "{pages}");
    }

    #[test]
    fn the_commands_that_exit_as_the_work_did_are_the_same_in_all_lists() {
        const LIST: &str = "run, wait, dispatch, attach TASK, tail and logs --follow exit as the work did";
        let codes = asked(&["supervisor", "help", "exit-codes"].map(OsString::from)).unwrap();
        let page = include_str!("../../../docs/api.md").replace('`', "");
        let help = crate::cli::command().render_long_help().to_string();
        for text in [&*codes, &page, &help] {
            assert!(text.contains(LIST), "{text}");
        }
    }
}
