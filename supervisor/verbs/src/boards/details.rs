//! The boards of a root, with their titles and other details.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{BoardName, Readers, Status, SystemClock, WorkspaceSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::cli_context;
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use base::terminal::{Cell, Screen};
use daemon::{Presence, check_workspace};
use service::details::Details;

/// List the boards of a root.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    about = "List the boards",
    after_help = "\
Examples:
  supervisor boards list
  supervisor boards list --all --json"
)]
pub struct ListBoards {
    /// True if removed boards that are kept are listed, too.
    #[arg(long, help = "Include removed boards that are still kept")]
    pub all: bool,
}

/// Create a board.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBoard {
    /// Its name: a-z 0-9 _ -
    pub slug: BoardName,
    /// Its title and other details.
    #[serde(default)]
    pub details: Details,
}

/// Change the title and other details of a board. Absent fields stay.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditBoard {
    /// The board.
    pub slug: BoardName,
    /// Changes; an empty text or path removes the value.
    #[serde(default)]
    pub details: Details,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct BoardLine {
    pub slug: String,
    /// The title, or the board's name if it has no title.
    pub name: String,
    description: String,
    icon: String,
    color: String,
    default_workdir: Option<PathBuf>,
    created_at: Option<i64>,
    archived: bool,
    pub(crate) db_path: PathBuf,
    /// True if the caller means this board.
    pub is_current: bool,
    counts: BTreeMap<Status, i64>,
    total: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Settings that have no effect at present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Verb for ListBoards {
    verb! { "boards": Operator, Read, on(None) => Vec<BoardLine> }

    async fn run(self, call: Call) -> Result<Vec<BoardLine>, Failure> {
        apart(move || list(call.service.root(), call.board_name(), self.all)).await
    }
}

impl Command for ListBoards {
    fn show(reply: &Vec<BoardLine>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line(cli_context::repeated("No boards. Create the default one with: supervisor init"));
            return;
        }
        let rows = reply.iter().map(|line| {
            let mark = match (line.is_current, line.archived) {
                (true, _) => "*",
                (false, true) => "removed",
                (false, false) => "",
            };
            let total = line.error.as_ref().map_or_else(|| line.total.to_string(), |_| "damaged".to_owned());
            [
                Cell::from(line.slug.clone()),
                Cell::from(mark.to_owned()),
                Cell::from(total),
                Cell::from(line.name.clone()),
            ]
        });
        screen.table(["BOARD", "CURRENT", "TASKS", "NAME"], rows);
    }
}

impl Verb for CreateBoard {
    verb! { "create-board": Operator, Write, on(None) => BoardLine }

    async fn run(self, call: Call) -> Result<BoardLine, Failure> {
        let warnings = unusable_workdir(&self.details, &call).await;
        apart(move || {
            let (root, slug) = (call.service.root(), &self.slug);
            if root.board(slug).symlink_metadata().is_ok() {
                return Err(Failure::new(Code::Conflict, format!("the board `{slug}` already exists"))
                    .hint(format!("use it with --board {slug}, or choose another name")));
            }
            check(&self.details)?;
            call.service.create_board(slug)?;
            self.details.write(&dir(root, slug))?;
            Ok(BoardLine { warnings, ..line(root, slug, call.board_name()) })
        })
        .await
    }
}

impl Command for CreateBoard {
    fn show(reply: &BoardLine, screen: &mut Screen) {
        tell("Created", reply, screen);
    }

    fn warnings(reply: &BoardLine) -> &[String] {
        &reply.warnings
    }
}

impl Verb for EditBoard {
    verb! { "edit-board": Operator, Write, on(None) => BoardLine }

    async fn run(self, call: Call) -> Result<BoardLine, Failure> {
        let warnings = unusable_workdir(&self.details, &call).await;
        apart(move || {
            let (root, slug) = (call.service.root(), &self.slug);
            require(root, slug)?;
            check(&self.details)?;
            let dir = dir(root, slug);
            Details::read(&dir).changed(self.details).write(&dir)?;
            Ok(BoardLine { warnings, ..line(root, slug, call.board_name()) })
        })
        .await
    }
}

impl Command for EditBoard {
    fn show(reply: &BoardLine, screen: &mut Screen) {
        tell("Changed", reply, screen);
    }

    fn warnings(reply: &BoardLine) -> &[String] {
        &reply.warnings
    }
}

/// Shows a board in one line, with the change made to it.
pub fn tell(done: &str, board: &BoardLine, screen: &mut Screen) {
    screen.line(format!("{done} board {} ({}): {}", board.slug, board.name, board.db_path.display()));
}

/// Refuses a board that does not exist.
pub fn require(root: &Root, slug: &BoardName) -> Result<(), Failure> {
    if dir(root, slug).is_dir() {
        return Ok(());
    }
    Err(Failure::new(Code::NotFound, format!("there is no board `{slug}`"))
        .hint(format!("supervisor boards list shows them; make it with: supervisor boards create {slug}")))
}

/// Returns the entry of a board in the list.
pub fn line(root: &Root, slug: &BoardName, current: &BoardName) -> BoardLine {
    described(&dir(root, slug), slug.as_str(), slug == current, false)
}

/// Runs blocking file operations outside of the threads of the async runtime.
async fn apart<T: Send + 'static>(
    f: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    blocking("the work on the boards did not finish", f).await?
}

fn list(root: &Root, current: &BoardName, all: bool) -> Result<Vec<BoardLine>, Failure> {
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
            names.iter().map(|name| {
                described(&base.join(name), name, !archived && name == current.as_str(), archived)
            }),
        );
    }
    Ok(lines)
}

fn described(dir: &Path, slug: &str, is_current: bool, archived: bool) -> BoardLine {
    let details = Details::read(dir);
    let db_path = dir.join("board.db");
    let stats = Readers::open(&db_path, Arc::new(SystemClock))
        .map_err(Failure::from)
        .and_then(|readers| readers.with(|view| view.tasks_by_status(None, None)).map_err(Failure::from));
    let (counts, error) = match stats {
        Ok(counts) => (counts, None),
        Err(failure) => (BTreeMap::new(), Some(failure.message)),
    };
    let marker = std::fs::metadata(dir.join("board.json")).and_then(|meta| meta.modified()).ok();
    let created = marker.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    BoardLine {
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
        warnings: Vec::new(),
    }
}

fn check(details: &Details) -> Result<(), Failure> {
    if let Some(name) = &details.name
        && name.chars().any(char::is_control)
    {
        return Err(Failure::usage("the title has control characters").hint("use one line"));
    }
    match &details.default_workdir {
        Some(path) if !path.as_os_str().is_empty() && !path.is_absolute() => {
            Err(Failure::usage(format!("{} is not an absolute directory", path.display()))
                .hint("use a path that begins with /"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns why tasks cannot use a default workdir at present, by the rule of `create --workspace dir:`. The workdir is
/// stored anyway: the directory may be created later, and each `create` checks it again.
async fn unusable_workdir(details: &Details, call: &Call) -> Vec<String> {
    let Some(path) = details.default_workdir.as_ref().filter(|path| !path.as_os_str().is_empty()) else {
        return Vec::new();
    };
    let place = WorkspaceSpec::Directory(path.clone());
    let warning = match check_workspace(&call.service, &place, call.actor.uid).await {
        Ok(Presence::There) => return Vec::new(),
        Ok(Presence::ToBeMade) => {
            let path = path.display();
            format!(
                "{path} does not exist yet: `--workspace dir` creates it when a task starts, `worktree` needs a repository there"
            )
        }
        Err(failure) => format!("no task can use the default workdir: {failure}"),
    };
    vec![warning]
}

fn dir(root: &Root, slug: &BoardName) -> PathBuf {
    root.boards().join(slug.as_str())
}
