//! `boards` at the command line: lists, creates and changes boards, and selects the default one.

use std::path::PathBuf;

use kernel::BoardName;

use super::restore::refuse_worker;
use super::{CommandLine, call};
use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use base::paths::Root;
use service::details::Details;
use verbs::{
    BoardLine, CreateBoard, EditBoard, ListBoards, RemoveBoard, board_line, require_board as require,
    tell_board,
};

/// List, create, rename, switch and remove boards
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
A command uses the board of --board, else of SUPERVISOR_BOARD or
HERMES_KANBAN_BOARD, else the one chosen with `switch`, else `default`.

Examples:
  supervisor boards list
  supervisor boards create releases --name 'Releases' --switch
  supervisor boards rm releases")]
pub(super) struct Boards {
    #[command(subcommand)]
    subcommand: Subcommand,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Subcommand {
    /// List the boards
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  supervisor boards list
  supervisor boards list --all --json"
    )]
    List {
        /// Include removed boards that are still kept
        #[arg(long)]
        all: bool,
    },
    /// Create a board
    #[command(
        visible_alias = "new",
        after_help = "\
Examples:
  supervisor boards create releases --name 'Our releases'
  supervisor boards create web --default-workdir /srv/web --switch"
    )]
    Create {
        /// Its name in commands: a-z 0-9 _ -
        slug: BoardName,
        #[command(flatten)]
        details: Details,
        /// Make it the board of commands without --board
        #[arg(long)]
        switch: bool,
    },
    /// Remove a board; its files are kept unless --delete is given
    #[command(
        visible_alias = "remove",
        after_help = "\
Examples:
  supervisor boards rm releases
  supervisor boards rm releases --delete"
    )]
    Rm {
        /// The board
        slug: BoardName,
        /// Delete it for good
        #[arg(long)]
        delete: bool,
    },
    /// Remove a board for good, as `rm --delete` does
    #[command(after_help = "\
Examples:
  supervisor boards delete releases")]
    Delete {
        /// The board
        slug: BoardName,
        /// Accepted for compatibility; has no further effect
        #[arg(long, hide = true)]
        delete: bool,
    },
    /// Make this the board of commands without --board
    #[command(
        visible_alias = "use",
        after_help = "\
Examples:
  supervisor boards switch releases
  supervisor boards switch default"
    )]
    Switch {
        /// The board
        slug: BoardName,
    },
    /// Show the current board
    #[command(
        visible_alias = "current",
        after_help = "\
Examples:
  supervisor boards show
  supervisor boards show --json"
    )]
    Show,
    /// Change the title of a board
    #[command(after_help = "\
Examples:
  supervisor boards rename releases 'Releases of 2027'")]
    Rename {
        /// The board
        slug: BoardName,
        /// Its title
        name: String,
    },
    /// Set the default workdir of a board; without a path, clear it
    #[command(after_help = "\
Examples:
  supervisor boards set-default-workdir web /srv/web
  supervisor boards set-default-workdir web")]
    SetDefaultWorkdir {
        /// The board
        slug: BoardName,
        /// An absolute directory
        path: Option<PathBuf>,
    },
}

/// Returns the board for commands: the named board, else the board chosen with `switch`, else the default board.
pub(super) fn current(root: &Root, named: Option<BoardName>) -> Result<BoardName, Failure> {
    if let Some(board) = named {
        return Ok(board);
    }
    if let Some(name) = base::environment::text("HERMES_KANBAN_BOARD") {
        return name.parse().map_err(|e| Failure::usage(format!("HERMES_KANBAN_BOARD: {e}")));
    }
    Ok(std::fs::read_to_string(root.board_choice())
        .ok()
        .and_then(|name| name.trim().parse().ok())
        .unwrap_or_default())
}

pub(super) async fn run(line: &CommandLine, command: Boards) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    let root = client.root();
    match command.subcommand {
        Subcommand::List { all } => call(client, ListBoards { all }, output).await,
        Subcommand::Create { slug, details, switch } => {
            let mut created = client.call(&CreateBoard { slug: slug.clone(), details }).await?;
            if switch {
                choose(root, &slug)?;
                created.is_current = true;
            }
            output.reply::<CreateBoard>(&created)
        }
        Subcommand::Rm { slug, delete } => remove(client, slug, delete, output).await,
        Subcommand::Delete { slug, .. } => remove(client, slug, true, output).await,
        Subcommand::Switch { slug } => {
            require(root, &slug)?;
            choose(root, &slug)?;
            print_board("Switched to", &board_line(root, &slug, &slug), output)
        }
        Subcommand::Show => print_board(
            "Commands without --board use",
            &board_line(root, client.board(), client.board()),
            output,
        ),
        Subcommand::Rename { slug, name } => {
            if name.trim().is_empty() || name.chars().any(char::is_control) {
                return Err(
                    Failure::usage("the title is empty or has control characters").hint("use one line")
                );
            }
            let details = Details { name: Some(name), ..Details::default() };
            let renamed = client.call(&EditBoard { slug, details }).await?;
            print_board("Renamed", &renamed, output)
        }
        Subcommand::SetDefaultWorkdir { slug, path } => {
            let details = Details { default_workdir: Some(path.unwrap_or_default()), ..Details::default() };
            call(client, EditBoard { slug, details }, output).await
        }
    }
}

fn print_board(done: &str, board: &BoardLine, output: Output) -> Result<u8, Failure> {
    if output.json() {
        output.value(board)?;
    } else {
        let mut screen = output.screen();
        tell_board(done, board, &mut screen);
        output.text(&screen.into_text())?;
    }
    Ok(0)
}

async fn remove(client: &Client, slug: BoardName, delete: bool, output: Output) -> Result<u8, Failure> {
    require(client.root(), &slug)?;
    call(client, RemoveBoard { slug, delete }, output).await
}

fn choose(root: &Root, slug: &BoardName) -> Result<(), Failure> {
    let path = root.board_choice();
    let fail = |e: std::io::Error| Failure::file("write", &path, &e);
    let draft = tempfile::NamedTempFile::new_in(root.dir()).map_err(fail)?;
    std::fs::write(draft.path(), slug.as_str()).map_err(fail)?;
    draft.persist(&path).map(drop).map_err(|e| fail(e.error))
}
