//! The command line: parse, call the verb, print its reply, end with the right code.

mod answer;
mod arguments;
mod attached;
mod boards;
mod dispatch;
mod doctor;
mod edit;
mod follow;
mod gc;
mod habit;
mod host_checks;
mod inert;
mod paper;
mod peer_files;
mod refused;
mod restore;
mod stop;
mod transfer;

use std::process::ExitCode;

use arguments::{Cli, Command, Daemon, Global};
use clap::FromArgMatches as _;

use crate::api::Verb;
use crate::client::{Client, WorkerSelf};
use crate::config::Tuning;
use crate::daemon::{self, Extent};
use crate::demo;
use crate::environment;
use crate::failure::{Failure, Problem};
use crate::paths::Root;
use crate::terminal::{self, Colour, Ink, LogWriter, Screen, complain, print, printable_lines};
use crate::verbs::{self, Pages};

/// Parses the command line and runs it.
pub(crate) fn main() -> ExitCode {
    let words = habit::translated(std::env::args_os());
    let parsed = command().try_get_matches_from(&words).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, inert::warnings(&matches)))
    });
    let (cli, warnings) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refused::answer(&error, &words),
    };
    let output = Output { json: cli.global.json, colour: cli.global.color };
    output.warn(&warnings);
    // A worker's environment is small and a command is short: one thread does.
    let runtime = if matches!(cli.command, Command::Daemon(_) | Command::Dispatch(_) | Command::Demo(_)) {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    };
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(cli, output));
            // Reads that are still under way (a watcher's) need not end first.
            runtime.shutdown_background();
            outcome
        }
        Err(e) => Err(Failure::failed(format!("failed to start: {e}"))),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output.fail(&failure);
            ExitCode::from(failure.code.exit())
        }
    }
}

/// How replies and refusals are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    colour: Colour,
}

impl Output {
    /// A screen for standard output.
    pub(crate) fn screen(self) -> Screen {
        Screen::stdout(self.colour)
    }

    /// Whether JSON was asked for.
    pub(crate) fn json(self) -> bool {
        self.json
    }

    fn fail(self, failure: &Failure) {
        if self.json
            && let Ok(text) = terminal::json(&serde_json::json!({ "error": Problem::from(failure) }))
        {
            drop(print(&format!("{text}\n")));
        }
        let screen = Screen::stderr(self.colour);
        let tell = |ink, label, text: &str| {
            let label = screen.paint(ink, label);
            complain(&format!("{label} {}", printable_lines(text)));
        };
        tell(Ink::Red, "error:", &failure.message);
        if let Some(hint) = &failure.hint {
            tell(Ink::Cyan, "hint:", hint);
        }
    }

    /// Writes warnings to standard error, where they do not mix with what a script reads.
    fn warn(self, warnings: &[String]) {
        let screen = Screen::stderr(self.colour);
        for warning in warnings {
            let label = screen.paint(Ink::Yellow, "warning:");
            complain(&format!("{label} {}", printable_lines(warning)));
        }
    }

    /// Prints a reply as JSON or as text, and returns the exit code that it stands for.
    pub(crate) fn reply<V: Verb>(self, reply: &V::Reply) -> Result<u8, Failure> {
        if self.json {
            self.value(reply)?;
        } else {
            let mut screen = self.screen();
            V::show(reply, &mut screen);
            self.text(&screen.into_text())?;
            self.warn(V::warnings(reply));
        }
        Ok(V::verdict(reply))
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn value<T: serde::Serialize>(self, value: &T) -> Result<(), Failure> {
        let text = terminal::json(value)
            .map_err(|e| Failure::failed(format!("the reply cannot be written: {e}")))?;
        self.text(&format!("{text}\n"))
    }

    /// Prints text as it is.
    #[expect(clippy::unused_self, reason = "whoever may print has an Output")]
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        print(text).map_err(|e| Failure::failed(format!("standard output cannot be written: {e}")))
    }
}

async fn run(cli: Cli, output: Output) -> Result<u8, Failure> {
    let Global { root, board, .. } = cli.global;
    match cli.command {
        Command::Completions { shell } => return paper::completions(shell, output),
        Command::Man { dir } => return paper::man(&dir, output),
        _ => {}
    }
    let worker = WorkerSelf::from_env(environment::text)?;
    let root = root.resolve(|name| environment::variable(name).map(Into::into))?;
    let client = Client::new(root.clone(), boards::current(&root, board)?, worker);
    match cli.command {
        Command::Init(verb) => call(&client, verb, output).await,
        Command::Create(verb) if verb.quiet => created_id(&client, *verb, output).await,
        Command::Create(verb) => call(&client, *verb, output).await,
        Command::List(verb) => call_all(&client, verb, output).await,
        Command::Swarm(verb) => call(&client, *verb, output).await,
        Command::NotifySubscribe(verb) => call(&client, verb, output).await,
        Command::NotifyList(verb) => call(&client, verb, output).await,
        Command::NotifyUnsubscribe(verb) => call(&client, verb, output).await,
        Command::Show(verb) => call(&client, verb, output).await,
        Command::Assign(verb) => call(&client, verb, output).await,
        Command::Reassign(verb) => call(&client, verb, output).await,
        Command::Edit(verb) => edit::run(&client, *verb, output).await,
        Command::Promote(verb) => call(&client, verb, output).await,
        Command::Schedule(verb) => call(&client, verb, output).await,
        Command::Diagnostics(verb) => call(&client, verb, output).await,
        Command::Hold(verb) => call(&client, verb, output).await,
        Command::Release(verb) => call(&client, verb, output).await,
        Command::Holds(verb) => call(&client, verb, output).await,
        Command::Assignees(verb) => call(&client, verb, output).await,
        Command::Link(verb) => call(&client, verb, output).await,
        Command::Unlink(verb) => call(&client, verb, output).await,
        Command::Comment(verb) => call(&client, verb, output).await,
        Command::Attach(verb) => call(&client, verb, output).await,
        Command::Attachments(verb) => call(&client, verb, output).await,
        Command::AttachRm(verb) => call(&client, verb, output).await,
        Command::Claim(verb) => call(&client, verb, output).await,
        Command::Heartbeat(verb) => call(&client, verb, output).await,
        Command::Complete(verb) => call(&client, verb, output).await,
        Command::RequestReview(verb) => call(&client, verb, output).await,
        Command::Answer(verb) => answer::run(&client, verb, output).await,
        Command::Deny(verb) => call(&client, verb, output).await,
        Command::Approve(verb) => call(&client, verb, output).await,
        Command::RequestChanges(verb) => call(&client, verb, output).await,
        Command::Block(verb) => call(&client, verb, output).await,
        Command::Unblock(verb) => call(&client, verb, output).await,
        Command::Archive(verb) => call(&client, verb, output).await,
        Command::Reopen(verb) => call(&client, verb, output).await,
        Command::Unarchive(verb) => call(&client, verb, output).await,
        Command::Reclaim(verb) => call(&client, verb, output).await,
        Command::Runs(verb) => call_all(&client, verb, output).await,
        Command::Context(verb) => call(&client, verb, output).await,
        Command::Stats(verb) => call(&client, verb, output).await,
        Command::Events(verb) => call(&client, verb, output).await,
        Command::Backup(verb) => call(&client, verb, output).await,
        Command::Restore(verb) => restore::run(&client, &verb, output),
        Command::Boards(verb) => boards::run(&client, verb, output).await,
        Command::Export(verb) => transfer::export(&client, &verb, output),
        Command::Import(verb) => transfer::import(&client, &verb, output),
        Command::Doctor(verb) => doctor::run(&client, &verb, output).await,
        Command::Gc(verb) => gc::run(&client, verb, output).await,
        Command::Stop(verb) => stop::run(&client, verb, output).await,
        Command::Log(verb) if verb.follow => follow::log(&client, verb, output).await,
        Command::Log(verb) => call(&client, verb, output).await,
        Command::Status(verb) if verb.watch => follow::status(&client, verb, output).await,
        Command::Status(verb) => call(&client, verb, output).await,
        Command::Tail(tail) => follow::tail(&client, tail, output).await,
        Command::Watch(watch) => follow::watch(&client, watch, output).await,
        Command::Dispatch(verb) => dispatch::run(&client, verb, output).await,
        Command::Daemon(verb) => serve(root, verb, output).await,
        Command::Demo(demo) => demo::run(demo, output).await,
        Command::Completions { .. } | Command::Man { .. } => Ok(0),
    }
}

/// Creates a task and prints its id alone. Warnings still go to whoever reads along.
async fn created_id(client: &Client, mut create: verbs::Create, output: Output) -> Result<u8, Failure> {
    create.localize(client)?;
    let created = client.call(&create).await?;
    output.text(&format!("{}\n", created.task.id))?;
    output.warn(&created.warnings);
    Ok(0)
}

/// Calls a verb and prints its reply.
async fn call<V: Verb>(client: &Client, mut verb: V, output: Output) -> Result<u8, Failure> {
    verb.localize(client)?;
    let reply = client.call(&verb).await?;
    output.reply::<V>(&reply)
}

/// Calls a verb with pages and prints as many rows as it asks for. A person is told that there is more; a script gets an
/// array unless it asks for a page.
async fn call_all<V: Pages + Clone>(client: &Client, mut verb: V, output: Output) -> Result<u8, Failure> {
    verb.localize(client)?;
    let is_page = verb.asks_for_pages();
    if is_page && output.json {
        return output.reply::<V>(&client.call(&verb).await?);
    }
    let (rows, next) = verbs::all(client, &verb).await?;
    output.reply::<V>(&if output.json { V::whole(rows) } else { V::joined(rows, next) })
}

async fn serve(root: Root, verb: Daemon, output: Output) -> Result<u8, Failure> {
    start_log(output, if verb.verbose { "debug" } else { "info" });
    let place = root.dir().to_owned();
    let tuning = Tuning {
        max_running: verb.max.and_then(|max| usize::try_from(max).ok()),
        failure_limit: verb.failure_limit,
    };
    tracing::debug!(?tuning, "command_line");
    let pidfile = verb.pidfile.clone();
    let announce = move || {
        complain(&format!(
            "supervisor {} serves {} (pid {}); stop it with Ctrl-C",
            env!("CARGO_PKG_VERSION"),
            place.display(),
            std::process::id()
        ));
        if let Some(path) = &pidfile
            && let Err(e) = std::fs::write(path, format!("{}\n", std::process::id()))
        {
            complain(&format!("warning: {}", Failure::file("write", path, &e)));
        }
    };
    let ended = daemon::run(root, Extent::Forever, tuning, announce).await;
    if let Some(path) = &verb.pidfile {
        // Whoever reads it looks for a daemon that is there.
        drop(std::fs::remove_file(path));
    }
    ended.map(|_| 0)
}

/// Logs to standard error from a level on; `RUST_LOG` chooses otherwise.
pub(crate) fn start_log(output: Output, level: &str) {
    use std::io::IsTerminal as _;
    let asked = environment::text("RUST_LOG");
    let filter = asked.and_then(|asked| tracing_subscriber::EnvFilter::try_new(asked).ok());
    let filter = filter.unwrap_or_else(|| tracing_subscriber::EnvFilter::new(level));
    let colour = output.colour == Colour::Always
        || (output.colour == Colour::Auto
            && std::io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| LogWriter).with_target(false);
    // A second call in one process (a pass inside another) keeps the first log.
    drop(log.with_ansi(colour).try_init());
}

/// What the command line understands. A number may be negative wherever a value is taken, and an environment variable
/// that is empty is not set.
pub(crate) fn command() -> clap::Command {
    fn prepared(command: clap::Command) -> clap::Command {
        let command = command.mut_args(|argument| {
            let unset = argument
                .get_env()
                .is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()));
            let argument = if unset { argument.env(clap::builder::Resettable::Reset) } else { argument };
            let values = argument.get_action().takes_values();
            if values { argument.allow_negative_numbers(true) } else { argument }
        });
        command.mut_subcommands(prepared)
    }
    prepared(<Cli as clap::CommandFactory>::command())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_explains_itself_with_an_example() {
        for verb in command().get_subcommands().filter(|verb| verb.get_name() != "help") {
            let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("supervisor "), "{} has no example", verb.get_name());
            assert!(verb.get_about().is_some(), "{} has no description", verb.get_name());
        }
    }
}
