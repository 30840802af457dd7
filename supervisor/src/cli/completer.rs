//! Completions with names from the board. A shell calls this program at each press of Tab, so it responds within a short time
//! or not at all, and reports no failure.
//!
//! The kind of an argument follows from its name in the help. So a new verb with an argument `TASK` or `--tenant` needs no
//! line here.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, Command, FromArgMatches as _};
use clap_complete::engine::ValueCompleter;
use clap_complete::{ArgValueCompleter, CompleteEnv, CompletionCandidate, PathCompleter};
use kernel::TaskId;
use nix::sys::signal::Signal;

use super::completion_script::VARIABLE;
use super::{CommandLine, arguments, command};
use crate::output::Output;
use base::terminal::{Colour, cut, printable};
use setup::automation::plugins::{Plugin, Plugins};
use verbs::{NameKind, NameLine, Names};

/// Limit on the wait for a completion.
const WITHIN: Duration = Duration::from_millis(700);
/// Limit on a title beside an id, in columns. Some shells show it.
const TITLE: usize = 60;

/// Responds to the completion script of a shell. Returns none if this process was not started by such a script.
pub(super) fn answer() -> Option<ExitCode> {
    std::env::var_os(VARIABLE).filter(|value| !value.is_empty())?;
    let here = std::env::current_dir().ok();
    let asked =
        CompleteEnv::with_factory(asking).var(VARIABLE).try_complete(std::env::args_os(), here.as_deref());
    match asked {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Returns the command line with completions for all values that are names.
fn asking() -> Command {
    completed(with_plugins(with_verbs_of_attachments(command())), "")
}

/// Adds the commands `attachments get` and `attachments rm`. Outside of completions they are parsed as `attach-get` and
/// `attach-rm`.
fn with_verbs_of_attachments(command: Command) -> Command {
    let of_verb =
        |verb: &str, name: &'static str| command.find_subcommand(verb).cloned().map(|verb| verb.name(name));
    let added: Vec<Command> =
        [of_verb("attach-get", "get"), of_verb("attach-rm", "rm")].into_iter().flatten().collect();
    command.mut_subcommand("attachments", |attachments| attachments.subcommands(added))
}

/// Adds the commands of plugins.
fn with_plugins(command: Command) -> Command {
    let Ok(root) = line().chosen_root() else { return command };
    let plugins = Plugins::load(&root);
    // clap needs names of static lifetime. They are leaked, and the process ends after its response.
    let named = |name: &str, about: &str| {
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        Command::new(name).about(cut(&printable(about), TITLE))
    };
    let with_verbs = plugins.plugins().filter(|plugin| !plugin.manifest.verbs.is_empty());
    let of_plugin = |Plugin { name, manifest, .. }: &Plugin| {
        let verbs = manifest.verbs.iter().map(|verb| named(&verb.name, &verb.about));
        named(name.as_str(), &manifest.description).subcommands(verbs)
    };
    let added: Vec<Command> = with_verbs.map(of_plugin).collect();
    command.subcommands(added)
}

/// Adds completions to the arguments of a command and its subcommands. `above` is the name of its parent command.
fn completed(command: Command, above: &str) -> Command {
    let name = format!("{above} {}", command.get_name()).trim_start().to_owned();
    let of_program = above.is_empty() && name == "supervisor";
    let verb = if of_program { String::new() } else { name };
    let command = command.mut_args(|argument| match values_of(&verb, &argument) {
        Some(values) => argument.add(ArgValueCompleter::new(values)),
        None => argument,
    });
    command.mut_subcommands(|below| completed(below, &verb))
}

/// Completions of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletedValues {
    Names(NameKind),
    Files,
    /// A task as the first value, then a file.
    TaskThenFile,
    Signals,
}

impl ValueCompleter for CompletedValues {
    fn complete(&self, begun: &OsStr) -> Vec<CompletionCandidate> {
        self.complete_at(0, begun)
    }

    fn complete_at(&self, at: usize, begun: &OsStr) -> Vec<CompletionCandidate> {
        let files = || PathCompleter::any().complete(begun);
        match self {
            CompletedValues::Names(of) => candidates(*of, begun),
            CompletedValues::TaskThenFile if at == 0 => {
                candidates(NameKind::Task, begun).into_iter().chain(files()).collect()
            }
            CompletedValues::Files | CompletedValues::TaskThenFile => files(),
            CompletedValues::Signals => {
                let names = Signal::iterator().map(|signal| signal.as_str().trim_start_matches("SIG"));
                let begins = begun.to_string_lossy().to_ascii_uppercase();
                let begun = names.filter(|name| name.starts_with(begins.as_str()));
                begun.map(CompletionCandidate::new).collect()
            }
        }
    }
}

/// Returns the kind of values of an argument: by the verb, if its name in the help is too general, else by that name.
fn values_of(verb: &str, argument: &Arg) -> Option<CompletedValues> {
    let id = argument.get_id().as_str();
    let names_profile = [
        "lane check",
        "lane show",
        "lane test",
        "login",
        "profile edit",
        "profile export",
        "profile rm",
        "profile show",
    ];
    let names_schedule = [
        "schedules edit",
        "schedules pause",
        "schedules resume",
        "schedules rm",
        "schedules run",
        "schedules show",
    ];
    match (verb, id) {
        ("tenant edit" | "tenant rm" | "tenant show", "name") => {
            Some(CompletedValues::Names(NameKind::Tenant))
        }
        ("profile create", "lane") | ("swarm", "workers") => Some(CompletedValues::Names(NameKind::Assignee)),
        ("plugin check", "plugin") | ("plugin resume" | "plugin uninstall", "name") => {
            Some(CompletedValues::Names(NameKind::Plugin))
        }
        (verb, "name" | "names") if names_schedule.contains(&verb) => {
            Some(CompletedValues::Names(NameKind::Schedule))
        }
        ("attach", "words") => Some(CompletedValues::TaskThenFile),
        ("run", "command") | ("complete" | "request-review", "artifacts") => Some(CompletedValues::Files),
        ("kill", "signal") => Some(CompletedValues::Signals),
        ("mission plan" | "mission review", "task_id") => Some(CompletedValues::Names(NameKind::Mission)),
        // The name of a new board cannot be completed.
        ("boards create", _) => None,
        (_, "slug") => Some(CompletedValues::Names(NameKind::Board)),
        (verb, "name") if names_profile.contains(&verb) => Some(CompletedValues::Names(NameKind::Assignee)),
        (_, _) => named_by(argument).map(CompletedValues::Names),
    }
}

/// Returns the kind of values of an argument, by its id or its name in the help.
fn named_by(argument: &Arg) -> Option<NameKind> {
    let id = argument.get_id().as_str();
    let value = argument.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
    match (id, value) {
        ("board", _) => Some(NameKind::Board),
        ("tenant", _) => Some(NameKind::Tenant),
        ("policy", _) => Some(NameKind::Policy),
        ("channel" | "notify", _) => Some(NameKind::Channel),
        ("assignee" | "reviewer" | "profile", _) => Some(NameKind::Assignee),
        ("account", _) => Some(NameKind::Account),
        ("mission", _) => Some(NameKind::Mission),
        ("attachment_id", _) => Some(NameKind::Attachment),
        (_, Some("RUN")) => Some(NameKind::Run),
        ("task_id" | "task_ids" | "parent_id" | "child_id" | "parents", _)
        | (_, Some("TASK" | "TASK/COMMENT" | "TASK/FILE" | "TASK/REASON" | "TASK/TEXT")) => {
            Some(NameKind::Task)
        }
        _ => None,
    }
}

/// Returns the names that begin with the typed text; none if the daemon does not respond in time.
fn candidates(of: NameKind, begun: &OsStr) -> Vec<CompletionCandidate> {
    let begins = begun.to_string_lossy().into_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    let names = runtime.block_on(async {
        let mut line = line();
        if of == NameKind::Board {
            // The value of `--board` is the word to complete, and not a whole name yet.
            line.global.board = None;
        }
        let client = line.client().ok()?;
        let asked = async {
            let task = match task_before() {
                Some(task) if matches!(of, NameKind::Run | NameKind::Attachment) => {
                    client.whole_ids(&[task]).await.ok()?.pop()
                }
                Some(_) | None => None,
            };
            client.call(&Names { of, begins, task }).await.ok()
        };
        tokio::time::timeout(WITHIN, asked).await.ok()?
    });
    runtime.shutdown_background();
    let names = names.into_iter().flat_map(|found| found.names);
    let candidate = |name: NameLine| {
        // The shell prints the text unchanged, so control characters in foreign texts are escaped.
        let about = name.about.map(|about| cut(&printable(&about), TITLE).into());
        CompletionCandidate::new(name.name).help(about)
    };
    names.map(candidate).collect()
}

/// Returns the first task on the command line, whose runs are completed.
fn task_before() -> Option<TaskId> {
    let words = std::env::args().skip_while(|word| word != "--").skip(2);
    words.filter(|word| word.starts_with("t_")).find_map(|word| word.parse().ok())
}

/// Returns the global options of the command line to complete, as far as they are typed.
fn line() -> CommandLine {
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let mut arguments: Vec<OsString> = vec!["supervisor".into()];
    let mut rest = words.into_iter().skip(1);
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        let has_value = ["--root", "--board"].contains(&text.as_ref());
        let is_whole = ["--root=", "--board="].iter().any(|option| text.starts_with(option));
        if is_whole || ["--system", "--user"].contains(&text.as_ref()) {
            arguments.push(word);
        } else if has_value && let Some(value) = rest.next() {
            arguments.extend([word, value]);
        }
    }
    let program = arguments::global();
    let global = program.try_get_matches_from(arguments).ok();
    let global = global.and_then(|matches| arguments::Global::from_arg_matches(&matches).ok());
    CommandLine { global: global.unwrap_or_default(), output: Output::new(false, Colour::Never) }
}
