//! `boards` at the command line: lists, creates and changes boards, and selects the default one.

use std::path::PathBuf;

use kernel::BoardName;

use super::call;
use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use base::paths::Root;
use service::details::Details;
use verbs::{
    BoardLine, CreateBoard, EditBoard, RemoveBoard, board_line, require_board as require, tell_board,
};

/// Create a board
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor boards create releases --name 'Our releases'
  supervisor boards create web --default-workdir /srv/web --switch")]
pub(super) struct Create {
    /// Its name in commands: a-z 0-9 _ -
    slug: BoardName,
    #[command(flatten)]
    details: Details,
    /// Make it the board of commands without --board
    #[arg(long)]
    switch: bool,
}

/// Remove a board for good, as `rm --delete` does
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor boards delete releases")]
pub(super) struct Delete {
    /// The board
    slug: BoardName,
    /// Accepted for compatibility; has no further effect
    #[arg(long, hide = true)]
    delete: bool,
}

/// Make this the board of commands without --board
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor boards switch releases
  supervisor boards switch default")]
pub(super) struct Switch {
    /// The board
    slug: BoardName,
}

/// Show the current board
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor boards show
  supervisor boards show --json")]
pub(super) struct Show {}

/// Change the title of a board
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor boards rename releases 'Releases of 2027'")]
pub(super) struct Rename {
    /// The board
    slug: BoardName,
    /// Its title
    name: String,
}

/// Set the default workdir of a board; without a path, clear it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor boards set-default-workdir web /srv/web
  supervisor boards set-default-workdir web")]
pub(super) struct SetDefaultWorkdir {
    /// The board
    slug: BoardName,
    /// An absolute directory
    path: Option<PathBuf>,
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

pub(super) async fn create(client: &Client, create: Create, output: Output) -> Result<u8, Failure> {
    let Create { slug, details, switch } = create;
    let mut created = client.call(&CreateBoard { slug: slug.clone(), details }).await?;
    if switch {
        choose(client.root(), &slug)?;
        created.is_current = true;
    }
    output.reply::<CreateBoard>(&created)
}

pub(super) async fn rm(client: &Client, remove: RemoveBoard, output: Output) -> Result<u8, Failure> {
    require(client.root(), &remove.slug)?;
    call(client, remove, output).await
}

pub(super) async fn delete(client: &Client, delete: Delete, output: Output) -> Result<u8, Failure> {
    rm(client, RemoveBoard { slug: delete.slug, delete: true }, output).await
}

pub(super) fn switch(client: &Client, Switch { slug }: Switch, output: Output) -> Result<u8, Failure> {
    let root = client.root();
    require(root, &slug)?;
    choose(root, &slug)?;
    print_board("Switched to", &board_line(root, &slug, &slug), output)
}

pub(super) fn show(client: &Client, _: Show, output: Output) -> Result<u8, Failure> {
    let (root, board) = (client.root(), client.board());
    print_board("Commands without --board use", &board_line(root, board, board), output)
}

pub(super) async fn rename(client: &Client, rename: Rename, output: Output) -> Result<u8, Failure> {
    let Rename { slug, name } = rename;
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(Failure::usage("the title is empty or has control characters").hint("use one line"));
    }
    let details = Details { name: Some(name), ..Details::default() };
    print_board("Renamed", &client.call(&EditBoard { slug, details }).await?, output)
}

pub(super) async fn set_default_workdir(
    client: &Client,
    set: SetDefaultWorkdir,
    output: Output,
) -> Result<u8, Failure> {
    let default_workdir = Some(set.path.unwrap_or_default());
    let details = Details { default_workdir, ..Details::default() };
    call(client, EditBoard { slug: set.slug, details }, output).await
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

fn choose(root: &Root, slug: &BoardName) -> Result<(), Failure> {
    let path = root.board_choice();
    let fail = |e: std::io::Error| Failure::file("write", &path, &e);
    let draft = tempfile::NamedTempFile::new_in(root.dir()).map_err(fail)?;
    std::fs::write(draft.path(), slug.as_str()).map_err(fail)?;
    draft.persist(&path).map(drop).map_err(|e| fail(e.error))
}
