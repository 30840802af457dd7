//! The grammar of the command line: global options, and the subcommands of the table.

use clap::Command;
use kernel::BoardName;

use super::CommandLine;
use super::{
    answer, assign, attach, attach_get, call, chat, create, dashboard, dispatch, dispatch_fleet, doctor,
    edit, follow, gc, list, login, logs, manual, matching, mcp, notify, noun_commands, pages, restore, run,
    run_demo, run_top, serve, service, show, stop, transfer, upgrade, wait,
};
use crate::demo;
use crate::top;
use base::failure::Failure;
use base::paths::RootChoice;
use base::table;
use base::terminal::Colour;

/// Runs fleets of confined workers from a durable task board
#[derive(Debug, clap::Parser)]
#[command(
    name = "supervisor",
    version,
    after_help = "\
A first tour:
  supervisor demo                    see it work, with real processes
  supervisor daemon                  run tasks as they become ready
  supervisor run -- echo hello       run a command as a task
  supervisor create 'say hello' --assignee shell --body 'echo hello'
  supervisor dispatch                without a daemon: run ready tasks
  supervisor status --watch          watch the workers

Exit codes:
  0 ok          3 not found       69 daemon unreachable
  1 failed      4 conflict        75 try again
  2 usage       5 needs a person  77 not permitted
run, wait, dispatch, attach TASK, tail and logs --follow exit as the work did."
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) word: Word,
}

#[derive(Debug, Default, clap::Args)]
pub(super) struct Global {
    #[command(flatten)]
    pub(super) root: RootChoice,
    /// The board to work on
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "SUPERVISOR_BOARD",
        help_heading = "Global options"
    )]
    pub(super) board: Option<BoardName>,
    /// Print JSON, errors included
    #[arg(long, global = true, help_heading = "Global options")]
    pub(super) json: bool,
    /// Use of colours
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        help_heading = "Global options"
    )]
    pub(super) color: Colour,
}

macro_rules! of_the_command_line {
    (
        $($group:literal {
            commands { $($command:ident($arguments:ty) => $run:path,)* }
            verbs { $($verb:ident $(=> $special:path)?,)* }
        })*
        api { $($hidden:ident,)* }
        nouns { $($nouns:tt)* }
    ) => {
        /// The word behind the global options.
        #[derive(Debug, clap::Subcommand)]
        pub(super) enum Word {
            $($($command(Box<$arguments>),)* $($verb(Box<verbs::$verb>),)*)*
        }

        /// The groups of the help, each with its number of subcommands.
        pub(super) const GROUPS: &[(&str, usize)] =
            &[$(($group, [$(stringify!($command),)* $(stringify!($verb),)*].len()),)*];

        /// Returns a subcommand with its options, as in the whole command line.
        fn word(name: &str) -> Option<Command> {
            // Clap wants names of static lifetime. The leak is bounded, as a process parses one command line.
            let begun = || Command::new(&*name.to_owned().leak());
            $($(if is_named(name, stringify!($command)) {
                return Some(<$arguments as clap::Args>::augment_args(begun()));
            })*
            $(if is_named(name, stringify!($verb)) {
                return Some(<verbs::$verb as clap::Args>::augment_args(begun()));
            })*)*
            None
        }

        impl Word {
            pub(super) async fn run(self, line: &CommandLine) -> Result<u8, Failure> {
                match self {
                    $($(Word::$command(arguments) => $run(line, *arguments).await,)*
                    $(Word::$verb(verb) => run_verb!(line, *verb $(, $special)?),)*)*
                }
            }
        }
    };
}

/// Runs a verb of the table.
macro_rules! run_verb {
    ($line:ident, $verb:expr) => {
        call(&$line.client()?, $verb, $line.output).await
    };
    ($line:ident, $verb:expr, $special:path) => {
        $special(&$line.client()?, $verb, $line.output).await
    };
}

table!(of_the_command_line);

/// Returns the command line with only this subcommand. It parses lines with the subcommand like the whole command line,
/// but is built in a fraction of the time. Without a subcommand it has only the global options.
pub(super) fn alone(name: Option<&str>) -> Option<Command> {
    let program = Command::new("supervisor").version(env!("CARGO_PKG_VERSION"));
    let program = <Global as clap::Args>::augment_args(program).subcommand_required(true);
    match name {
        Some(name) => Some(program.subcommand(word(name)?)),
        None => Some(program),
    }
}

/// Returns the global options.
pub(super) fn global() -> Command {
    <Global as clap::Args>::augment_args(Command::new("supervisor"))
}

/// Returns true if a word on the command line names a type of the table: `attach-rm` is `AttachRm`.
fn is_named(word: &str, type_name: &str) -> bool {
    let dashed = type_name.char_indices().flat_map(|(at, letter)| {
        let dash = (at > 0 && letter.is_ascii_uppercase()).then_some('-');
        dash.into_iter().chain([letter.to_ascii_lowercase()])
    });
    word.chars().eq(dashed)
}
