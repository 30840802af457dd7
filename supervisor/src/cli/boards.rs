//! `boards` at the command line: which boards there are, what they are called, and which one is meant by default.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{BoardName, Readers, SystemClock};
use serde::Serialize;

use super::CommandLine;
use super::restore::{lock, refuse_worker};
use crate::client::Client;
use crate::details::Details;
use crate::exit::Code;
use crate::failure::Failure;
use crate::output::Output;
use crate::owner::OwnerLock;
use crate::paths::Root;
use crate::terminal::{Cell, Screen};
use crate::verbs::{Init, RemoveBoard};

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
    verb: Verb,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Verb {
    /// List the boards
    #[command(visible_alias = "ls")]
    List {
        /// Include removed boards that are still kept
        #[arg(long)]
        all: bool,
    },
    /// Create a board
    #[command(visible_alias = "new")]
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
    #[command(visible_alias = "remove")]
    Rm {
        /// The board
        slug: BoardName,
        /// Delete it for good
        #[arg(long)]
        delete: bool,
    },
    /// Remove a board for good, as `rm --delete` does
    Delete {
        /// The board
        slug: BoardName,
        /// Said twice, it means the same
        #[arg(long, hide = true)]
        delete: bool,
    },
    /// Make this the board of commands without --board
    #[command(visible_alias = "use")]
    Switch {
        /// The board
        slug: BoardName,
    },
    /// Show the current board
    #[command(visible_alias = "current")]
    Show,
    /// Change the title of a board
    Rename {
        /// The board
        slug: BoardName,
        /// Its title
        name: String,
    },
    /// Set the default workdir of a board; without a path, clear it
    SetDefaultWorkdir {
        /// The board
        slug: BoardName,
        /// An absolute directory
        path: Option<PathBuf>,
    },
}

/// One board.
#[derive(Debug, Serialize)]
struct Line {
    slug: String,
    name: String,
    description: String,
    icon: String,
    color: String,
    default_workdir: Option<PathBuf>,
    created_at: Option<i64>,
    archived: bool,
    db_path: PathBuf,
    is_current: bool,
    counts: BTreeMap<String, i64>,
    total: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The board that commands mean: what is said, else what was chosen with `switch`, else the default one.
pub(super) fn current(root: &Root, said: Option<BoardName>) -> Result<BoardName, Failure> {
    if let Some(board) = said {
        return Ok(board);
    }
    if let Some(name) = crate::environment::text("HERMES_KANBAN_BOARD") {
        return name.parse().map_err(|e| Failure::usage(format!("HERMES_KANBAN_BOARD: {e}")));
    }
    Ok(std::fs::read_to_string(root.board_choice())
        .ok()
        .and_then(|name| name.trim().parse().ok())
        .unwrap_or_default())
}

pub(super) async fn run(line: &CommandLine, verb: Boards) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    let root = client.root();
    match verb.verb {
        Verb::List { all } => {
            let lines = list(root, client.board(), all)?;
            if output.json() {
                output.value(&lines)?;
            } else {
                let mut screen = output.screen();
                table(&lines, &mut screen);
                output.text(&screen.into_text())?;
            }
            Ok(0)
        }
        Verb::Create { slug, details, switch } => {
            if root.board(&slug).symlink_metadata().is_ok() {
                return Err(Failure::new(Code::Conflict, format!("there is a board `{slug}` already"))
                    .hint(format!("use it with --board {slug}, or choose another name")));
            }
            check(&details)?;
            let there = Client::new(root.clone(), slug.clone(), None);
            there.call(&Init::default()).await?;
            details.write(&dir(root, &slug))?;
            if switch {
                choose(root, &slug)?;
            }
            told(client, root, &slug, "Created", output)
        }
        Verb::Rm { slug, delete } => remove(client, slug, delete, output).await,
        Verb::Delete { slug, .. } => remove(client, slug, true, output).await,
        Verb::Switch { slug } => {
            require(root, &slug)?;
            choose(root, &slug)?;
            told(&Client::new(root.clone(), slug.clone(), None), root, &slug, "Switched to", output)
        }
        Verb::Show => told(client, root, client.board(), "The current one is", output),
        Verb::Rename { slug, name } => {
            if name.trim().is_empty() || name.chars().any(char::is_control) {
                return Err(
                    Failure::usage("the title is empty or has control characters").hint("use one line")
                );
            }
            change(root, &slug, |details| details.name = Some(name))?;
            told(client, root, &slug, "Renamed", output)
        }
        Verb::SetDefaultWorkdir { slug, path } => {
            check(&Details { default_workdir: path.clone(), ..Details::default() })?;
            change(root, &slug, |details| details.default_workdir = path)?;
            told(client, root, &slug, "Changed", output)
        }
    }
}

fn told(client: &Client, root: &Root, slug: &BoardName, what: &str, output: Output) -> Result<u8, Failure> {
    let line = line(&dir(root, slug), slug.as_str(), client.board() == slug, false);
    if output.json() {
        output.value(&line)?;
    } else {
        output.text(&format!("{what} board {} ({}): {}\n", line.slug, line.name, line.db_path.display()))?;
    }
    Ok(0)
}

fn list(root: &Root, current: &BoardName, all: bool) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for (base, archived) in [(root.boards(), false), (root.removed_boards(), true)] {
        if archived && !all {
            continue;
        }
        let entries = match std::fs::read_dir(&base) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Failure::file("list the boards in", &base, &e)),
        };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| archived || name.parse::<BoardName>().is_ok());
        names.sort();
        lines.extend(
            names
                .iter()
                .map(|name| line(&base.join(name), name, !archived && name == current.as_str(), archived)),
        );
    }
    Ok(lines)
}

fn line(dir: &Path, slug: &str, is_current: bool, archived: bool) -> Line {
    let details = Details::read(dir);
    let db_path = dir.join("board.db");
    let stats = Readers::open(&db_path, Arc::new(SystemClock))
        .map_err(Failure::from)
        .and_then(|readers| readers.with(|view| view.tasks_by_status(None)).map_err(Failure::from));
    let (counts, error) = match stats {
        Ok(counts) => (counts, None),
        Err(failure) => (BTreeMap::new(), Some(failure.message)),
    };
    let marker = std::fs::metadata(dir.join("board.json")).and_then(|meta| meta.modified()).ok();
    let created = marker.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Line {
        slug: slug.to_owned(),
        name: details.name.unwrap_or_else(|| slug.to_owned()),
        description: details.description.unwrap_or_default(),
        icon: details.icon.unwrap_or_default(),
        color: details.colour.unwrap_or_default(),
        default_workdir: details.default_workdir,
        created_at: created.and_then(|since| i64::try_from(since.as_secs()).ok()),
        archived,
        db_path,
        is_current,
        total: counts.values().sum(),
        counts,
        error,
    }
}

fn table(lines: &[Line], screen: &mut Screen) {
    if lines.is_empty() {
        screen.line("No boards. Any command makes the default one: supervisor init");
        return;
    }
    let rows = lines.iter().map(|line| {
        let mark = if line.is_current {
            "*"
        } else if line.archived {
            "removed"
        } else {
            ""
        };
        [
            Cell::from(line.slug.clone()),
            Cell::from(mark.to_owned()),
            Cell::from(line.error.as_ref().map_or_else(|| line.total.to_string(), |_| "damaged".to_owned())),
            Cell::from(line.name.clone()),
        ]
    });
    screen.list(["BOARD", "CURRENT", "TASKS", "NAME"], rows);
}

/// Takes a board away: the daemon does it, or this process where none runs.
async fn remove(client: &Client, slug: BoardName, delete: bool, output: Output) -> Result<u8, Failure> {
    let root = client.root();
    require(root, &slug)?;
    let verb = RemoveBoard { slug, delete };
    if OwnerLock::holder(root).is_some() {
        let there = Client::new(root.clone(), BoardName::default(), None);
        let removed = there.call(&verb).await?;
        return output.reply::<RemoveBoard>(&removed);
    }
    let _lock = lock(root)?;
    let removed = verb.take_away(root)?;
    output.reply::<RemoveBoard>(&removed)
}

fn require(root: &Root, slug: &BoardName) -> Result<(), Failure> {
    if dir(root, slug).is_dir() {
        return Ok(());
    }
    Err(Failure::new(Code::NotFound, format!("there is no board `{slug}`"))
        .hint(format!("supervisor boards list shows them; make it with: supervisor boards create {slug}")))
}

fn check(details: &Details) -> Result<(), Failure> {
    match &details.default_workdir {
        Some(path) if !path.is_absolute() => {
            Err(Failure::usage(format!("{} is not an absolute directory", path.display()))
                .hint("write it from / on"))
        }
        Some(_) | None => Ok(()),
    }
}

fn change(root: &Root, slug: &BoardName, change: impl FnOnce(&mut Details)) -> Result<(), Failure> {
    require(root, slug)?;
    let dir = dir(root, slug);
    let mut details = Details::read(&dir);
    change(&mut details);
    details.write(&dir)
}

fn choose(root: &Root, slug: &BoardName) -> Result<(), Failure> {
    let path = root.board_choice();
    let fail = |e: std::io::Error| Failure::file("write", &path, &e);
    let draft = tempfile::NamedTempFile::new_in(root.dir()).map_err(fail)?;
    std::fs::write(draft.path(), slug.as_str()).map_err(fail)?;
    draft.persist(&path).map(drop).map_err(|e| fail(e.error))
}

fn dir(root: &Root, slug: &BoardName) -> PathBuf {
    root.boards().join(slug.as_str())
}
