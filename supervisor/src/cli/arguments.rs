//! What the command line understands: the global options, and the words of the table.

use kernel::BoardName;

use super::CommandLine;
use super::{
    answer, boards, call, create, dispatch, doctor, edit, follow, gc, manual, pages, restore, run_demo,
    serve, stop, transfer,
};
use crate::demo;
use crate::failure::Failure;
use crate::paths::RootChoice;
use crate::table::table;
use crate::terminal::Colour;
use crate::verbs;

/// Runs fleets of confined workers from a durable task board
#[derive(Debug, clap::Parser)]
#[command(
    name = "supervisor",
    version,
    after_help = "\
A first tour:
  supervisor demo                    see it work, with real processes
  supervisor create 'say hello' --assignee shell --body 'echo hello'
  supervisor dispatch                run ready tasks and wait for them
  supervisor daemon                  run tasks as they become ready
  supervisor status --watch          watch the workers

Exit codes:
  0 ok          2 usage       4 conflict             75 try again
  1 failed      3 not found   69 daemon unreachable  77 not permitted"
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) word: Word,
}

#[derive(Debug, clap::Args)]
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
    /// When to colour
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
    ) => {
        /// The word behind the global options.
        #[derive(Debug, clap::Subcommand)]
        pub(super) enum Word {
            $($($command(Box<$arguments>),)* $($verb(Box<verbs::$verb>),)*)*
        }

        /// The groups of the help, each with how many words it has.
        pub(super) const GROUPS: &[(&str, usize)] =
            &[$(($group, [$(stringify!($command),)* $(stringify!($verb),)*].len()),)*];

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

/// Runs a verb as its row of the table says.
macro_rules! run_verb {
    ($line:ident, $verb:expr) => {
        call(&$line.client()?, $verb, $line.output).await
    };
    ($line:ident, $verb:expr, $special:path) => {
        $special(&$line.client()?, $verb, $line.output).await
    };
}

table!(of_the_command_line);
