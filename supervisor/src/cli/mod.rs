//! The command line: parses it, calls the verb, prints the reply, and sets the exit code.

mod answer;
mod arguments;
mod assign;
mod attach;
mod attach_get;
mod attach_terminal;
mod boards;
mod browser;
mod chat;
mod compat;
mod completer;
mod completion_script;
mod create;
mod daemon_watch;
mod dashboard;
mod dispatch;
mod dispatch_fleet;
mod doctor;
mod edit;
mod editor;
mod extension;
mod follow;
mod foreign_commands;
mod forget;
mod gc;
mod grouped;
mod handbook;
#[cfg(test)]
mod hint_tests;
mod ignored_flags;
mod lane;
mod list;
mod login;
mod logs;
mod manual;
mod matching;
mod mcp;
mod mission;
mod notify;
mod noun_commands;
mod nouns;
mod outcome;
mod pages;
mod parse_errors;
mod plugin;
mod profile;
mod readable_output;
mod restore;
mod run;
mod schedule_add;
mod schedules;
mod serve;
mod service;
mod settling;
mod show;
mod stop;
mod tenant;
mod tenant_directory;
mod tenant_file;
mod tenant_settings;
mod topics;
mod transfer;
mod upgrade;
mod wait;
mod waits;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use arguments::{Cli, Global, Word};
use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches as _};
use tokio::runtime::{Builder, Runtime};

use crate::client::Client;
use crate::demo::{self, Demo};
use crate::output::Output;
use crate::top::{self, Top};
use api::Working;
use api::command::{AnyCommand, Command};
use base::cli_context;
use base::environment;
use base::failure::Failure;
use base::invocation::WorkerSelf;
use base::paths::Root;
use base::terminal::Colour;
use host::own_directory;

/// Parses the command line and runs it.
pub(crate) fn main() -> ExitCode {
    if let Some(code) = completer::answer() {
        return code;
    }
    let words = compat::translated(std::env::args_os());
    if let Some(text) = topics::asked(&words) {
        // A reader that closes the pipe before the end of the help causes no failure.
        drop(base::terminal::print(&text));
        return ExitCode::SUCCESS;
    }
    let verb = compat::first_verb(&words);
    if words.get(verb).is_none_or(|word| word != "daemon") {
        cli_context::keep(&words, verb, |word| arguments::alone(Some(word)).is_some());
    }
    if let Some(failure) = foreign_commands::pair(&words) {
        let json = words.iter().any(|word| word == "--json");
        return failed(Output::new(json, Colour::Never), &failure);
    }
    let parsed = matches(&words).and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        let root = cli.global.root.of_options_first(matches.value_source("root"));
        cli.global.root = root.map_err(|two| command().error(ErrorKind::ArgumentConflict, two))?;
        Ok((cli, ignored_flags::warnings(&matches)))
    });
    let (cli, warnings) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            return match extension::meant(&error, &words) {
                Some(asked) => extension::run(asked),
                None => parse_errors::answer(&error, &words),
            };
        }
    };
    let Cli { global, word } = cli;
    let output = Output::new(global.json, global.color);
    output.warn(&warnings);
    // One thread is sufficient for a short command, also under the limits of a worker.
    let runtime = if matches!(word, Word::Daemon(_) | Word::Dispatch(_) | Word::Demo(_) | Word::Service(_)) {
        Builder::new_multi_thread().enable_all().build()
    } else {
        Builder::new_current_thread().enable_all().build()
    };
    finish(runtime, output, word.run(&CommandLine { global, output }))
}

/// Runs a command to its end, and prints its failure.
fn finish(
    runtime: io::Result<Runtime>,
    output: Output,
    command: impl Future<Output = Result<u8, Failure>>,
) -> ExitCode {
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(command);
            // Reads in progress, such as those of `watch`, need not finish.
            runtime.shutdown_background();
            outcome
        }
        Err(e) => Err(Failure::failed(format!("failed to start: {e}"))),
    };
    outcome.map_or_else(|failure| failed(output, &failure), ExitCode::from)
}

/// Prints a failure, and returns the exit code for it.
fn failed(output: Output, failure: &Failure) -> ExitCode {
    output.fail(failure);
    ExitCode::from(failure.code.exit())
}

/// Parses a command line. Errors, help and unknown subcommands need the whole command line, which takes a while to
/// build. A known subcommand needs only its own part.
fn matches(words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let word = words.get(compat::first_verb(words));
    let alone = match word.map(|word| word.to_str()) {
        Some(Some(word)) => arguments::alone(Some(word)),
        Some(None) => None,
        None => arguments::alone(None),
    };
    let parsed = alone.map(|program| prepared(program).try_get_matches_from(words));
    match parsed {
        Some(Ok(matches)) => Ok(matches),
        Some(Err(error)) if error.kind() == ErrorKind::DisplayVersion => Err(error),
        Some(Err(_)) | None => command().try_get_matches_from(words),
    }
}

/// Context of a command beside its own arguments.
#[derive(Debug)]
struct CommandLine {
    global: Global,
    output: Output,
}

impl CommandLine {
    /// Returns the root after a check that its directories are safe.
    fn root(&self) -> Result<Root, Failure> {
        let root = self.chosen_root()?;
        own_directory::require(&root)?;
        Ok(root)
    }

    fn chosen_root(&self) -> Result<Root, Failure> {
        self.global.root.clone().resolve(|name| environment::variable(name).map(Into::into))
    }

    /// Returns a client for the selected board, with the token inside a run.
    fn client(&self) -> Result<Client, Failure> {
        let worker = WorkerSelf::from_env(environment::text)?;
        // A worker reaches the board only through the daemon, so the directory of the root is not checked here.
        let root = if worker.is_some() { self.chosen_root()? } else { self.root()? };
        let board = boards::current(&root, self.global.board.clone())?;
        Ok(Client::new(root, board, worker))
    }
}

async fn run_demo(line: &CommandLine, demo: Demo) -> Result<u8, Failure> {
    demo::run(demo, line.output).await
}

async fn run_top(line: &CommandLine, asked: Top) -> Result<u8, Failure> {
    top::run(line.client()?, asked, line.output).await
}

/// Calls a verb and prints its reply.
fn call<V: Command>(client: &Client, verb: V, output: Output) -> Working<'_, u8> {
    Box::pin(call_any(client, Box::new(verb), output))
}

async fn call_any(client: &Client, mut verb: Box<dyn AnyCommand>, output: Output) -> Result<u8, Failure> {
    verb.localize(client.here())?;
    let reply = client.call_any(&*verb).await?;
    output.reply_any(verb.replies(), &*reply)
}

/// Returns the grammar of the command line.
pub(crate) fn command() -> clap::Command {
    let program = prepared(<Cli as clap::CommandFactory>::command());
    let after = program.get_after_help().map(ToString::to_string).unwrap_or_default();
    grouped::helped(program.after_help(format!("{after}\n\nTopics:\n{}", topics::listed().trim_end())))
}

/// Returns a command with negative numbers permitted as values, and with empty environment variables treated as unset.
fn prepared(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let unset = argument
            .get_env()
            .is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()));
        let argument = if unset { argument.env(clap::builder::Resettable::Reset) } else { argument };
        let values = argument.get_action().takes_values();
        if values { argument.allow_negative_numbers(true) } else { argument }
    });
    let after = command.get_after_help().map(|text| flowing(&text.to_string()));
    let command = if let Some(after) = after { command.after_help(after) } else { command };
    command.mut_subcommands(prepared)
}

/// Joins the lines of each paragraph, so that clap wraps it at the width of the terminal. Examples stay unchanged.
fn flowing(text: &str) -> String {
    let block = |block: &str| {
        let is_prose = !block.contains("\n ");
        if is_prose { block.replace('\n', " ") } else { block.to_owned() }
    };
    text.split("\n\n").map(block).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let text = "One\nparagraph.\n\nExamples:\n  supervisor a\n  supervisor b";
        assert_eq!(flowing(text), "One paragraph.\n\nExamples:\n  supervisor a\n  supervisor b");
    }

    #[test]
    fn a_word_alone_has_all_that_it_has_in_the_whole_command_line() {
        let mut whole = command();
        whole.build();
        for word in whole.get_subcommands().filter(|word| word.get_name() != "help") {
            let name = word.get_name();
            let mut program = prepared(arguments::alone(Some(name)).unwrap());
            program.build();
            let alone = program.find_subcommand(name).unwrap();
            let shown = |word: &clap::Command| word.clone().render_long_help().to_string();
            assert_eq!(shown(alone), shown(word), "{name}");
            let understood = |word: &clap::Command| {
                let understood = word.get_arguments().map(|argument| format!("{argument:?}"));
                understood.collect::<Vec<_>>()
            };
            assert_eq!(understood(alone), understood(word), "{name}");
        }
        assert!(arguments::alone(Some("nonsense")).is_none());
    }

    #[test]
    fn what_is_asked_for_by_its_name_is_parsed_as_by_the_whole_command_line() {
        for line in [
            "list --limit 3",
            "--board b ls",
            "--json boards list --all",
            "attach-rm t_0123abcd 1",
            "--version",
            "list --version",
            "list --nope",
            "help list",
            "create --help",
            "nonsense",
            "",
        ] {
            let words = ["supervisor"].into_iter().chain(line.split_whitespace()).map(OsString::from);
            let words: Vec<OsString> = words.collect();
            let parsed_as = |parsed: Result<ArgMatches, clap::Error>| match parsed {
                Ok(matches) => format!("{:?}", Cli::from_arg_matches(&matches).unwrap()),
                Err(error) => format!("{:?} {error}", error.kind()),
            };
            assert_eq!(
                parsed_as(matches(&words)),
                parsed_as(command().try_get_matches_from(&words)),
                "{line}"
            );
        }
    }

    #[test]
    fn every_example_fits_into_eighty_columns() {
        let command = command();
        let verbs = command.get_subcommands().flat_map(|verb| verb.get_subcommands().chain([verb]));
        for verb in verbs {
            let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in after.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= 80, "{}: {line}", verb.get_name());
            }
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_verb_has_one_name() {
        let command = command();
        let words: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let entries = verbs::entries();
        let of_the_api_alone = [
            "log",
            "resolve",
            "names",
            "patch",
            "bulk-patch",
            "markdown",
            "open-dashboard",
            "dashboard-sessions",
            "revoke-dashboard",
            "create-board",
            "edit-board",
            "remove-board",
            "tools",
            "lanes",
            "check-lane",
            "profiles",
            "missions",
            "mission-create",
            "mission-show",
            "mission-pause",
            "mission-resume",
            "mission-cancel",
            "mission-plan",
            "mission-review",
            "chats",
            "check-chat",
            "note-tool-call",
            "notify-test",
            "notify-outbox",
            "notify-retry",
            "notify-drop",
            "tenants",
            "tenant-usage",
            "schedules",
            "save-schedule",
            "pause-schedule",
            "run-schedule",
            "remove-schedule",
            "plugins",
            "check-plugin",
            "resume-plugin",
            "call-plugin",
            "call-plugin-tool",
            "reload",
        ];
        for entry in &entries {
            assert!(words.contains(&entry.name) || of_the_api_alone.contains(&entry.name), "{}", entry.name);
        }
        assert_eq!(words.len(), arguments::GROUPS.iter().map(|(_, count)| count).sum::<usize>());
    }

    #[test]
    fn every_verb_explains_itself_with_an_example() {
        fn walk(command: &clap::Command, above: &str) -> usize {
            let verbs =
                command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set());
            let explained = verbs.map(|verb| {
                let name = format!("{above} {}", verb.get_name());
                let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
                let has_example = after.contains("supervisor ") && after.contains(verb.get_name());
                assert!(has_example, "{name} has no example");
                assert!(verb.get_about().is_some(), "{name} has no description");
                walk(verb, &name) + 1
            });
            explained.sum()
        }
        assert!(walk(&command(), "supervisor") > 70);
    }
}
