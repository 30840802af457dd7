//! Imports a board into an empty one, as a whole or not at all.
//!
//! An import writes to the file of the existing board, so it can run beside a daemon. A daemon settles open runs only when
//! it starts, so an export with an open run is refused while a daemon runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{
    Actor, Adopted, Board, BoardName, Counted, ImportedPlace, ImportedPolicy, PeerBoard, Sweep, SweepScope,
    TaskId,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::attached;
use super::peer_files;
use super::spec::unfit_workspace;
use base::exit::Code;
use base::failure::Failure;
use service::details::Details;
use service::{BoardHandle, Service};
use setup::config::Config;
use setup::roster::Roster;

/// Hint about the location of the other program's boards.
const THEIR_PLACE: &str =
    "the boards of `hermes kanban` are kanban.db and kanban/boards/<slug>/kanban.db in its home directory";

/// Limit on the workspaces that a refusal names.
const LISTED: usize = 5;

/// Counts of an import, and the values that it changed or left out.
#[derive(Debug, Serialize, Deserialize)]
pub struct ImportReport {
    pub board: BoardName,
    pub rows: BTreeMap<String, u64>,
    /// Number of attached files.
    pub files: u64,
    /// Values that were changed on import, because they mean something else here.
    pub changed: Vec<String>,
    /// Items that were not imported.
    pub left: Vec<String>,
}

/// Caller of an import.
#[derive(Debug)]
pub struct Importer {
    pub actor: Actor,
    /// Policies that the caller accepts for the imported tasks.
    pub accepted: BTreeSet<String>,
    /// Directories of this host in which the imported tasks may work.
    pub places: AllowedDirectories,
}

/// Directories of this host in which imported tasks may work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedDirectories {
    /// No directory: the caller has not accepted the directories that the file names.
    None,
    /// Every directory that the file names.
    Named,
}

/// Imports a source into an empty board. Tasks that would run under a wider policy than the default, or work in a
/// directory of this host, are imported only if the caller accepts that. The file also names the creator of each task,
/// which decides the user of a worker of root's daemon in such a directory.
pub fn read(
    source: ImportSource,
    service: &Service,
    board: &BoardHandle,
    importer: Importer,
) -> Result<ImportReport, Failure> {
    let Importer { actor, accepted, places } = importer;
    let root = service.root();
    let open = if service.daemon().is_some() { OpenRuns::Refused } else { OpenRuns::Kept };
    let terms = ImportTerms { open, accepted, places, roster: service.roster(), config: service.config() };
    let read = read_rows(source, board, actor, terms).and_then(|(mut imported, details)| {
        imported.left.extend(attached::flaws(root, board.name())?.1);
        if let (Some(details), Some(dir)) = (details, root.board(board.name()).parent()) {
            details.write(dir)?;
        }
        Ok(imported)
    });
    // The import stops all schedules. This call starts the schedules of this host again.
    service.automate(board);
    if read.is_ok() && service.daemon().is_none() {
        // The board has no row that this process has not just written, so a daemon may serve it while it checks it.
        service.leave(board);
    }
    if read.is_err() {
        // Stored files without rows are removed. An error of the removal would hide the first failure.
        drop(board.sweep_blobs(&SweepScope::All, Sweep::Remove));
    }
    read
}

/// Treatment of runs that are open in an export. A daemon settles such runs only when it starts.
#[derive(Clone, Copy)]
enum OpenRuns {
    Kept,
    Refused,
}

/// Permissions and definitions against which the rows of an import are checked.
struct ImportTerms {
    open: OpenRuns,
    /// Policies that the caller accepts.
    accepted: BTreeSet<String>,
    places: AllowedDirectories,
    roster: Arc<Roster>,
    config: Arc<Config>,
}

impl ImportTerms {
    /// Refuses tasks that the caller has not accepted.
    fn require(&self, board: &Board<'_>) -> Result<(), kernel::Error> {
        self.require_places(&board.imported_places()?)?;
        self.require_accepted(board.imported_policies()?)
    }

    /// Refuses tasks that would work in directories of this host, unless the caller accepts it.
    fn require_places(&self, found: &[ImportedPlace]) -> Result<(), kernel::Error> {
        if self.places == AllowedDirectories::Named || found.is_empty() {
            return Ok(());
        }
        let named = found.iter().take(LISTED).map(|one| {
            format!("{} in {} (such as {})", Counted(one.tasks, "task"), one.workspace, one.first)
        });
        let mut named: Vec<String> = named.collect();
        if let Some(more) = found.len().checked_sub(LISTED).filter(|more| *more > 0) {
            named.push(format!("others in {more} more"));
        }
        Err(kernel::Error::conflict(
            format!("the import would run tasks in directories of this host: {}", named.join(", ")),
            "nothing was imported; look at the tasks, and import them with --accept-workspaces",
        ))
    }

    /// Refuses tasks that would run under a wider policy than the default, unless the caller accepts it.
    fn require_accepted(&self, found: Vec<ImportedPolicy>) -> Result<(), kernel::Error> {
        let mut wider: BTreeMap<String, (u64, TaskId)> = BTreeMap::new();
        for one in found {
            let asked = one.policy.as_deref();
            let name = match (&one.assignee, asked) {
                (Some(assignee), _) => self.roster.policy_name(assignee, asked, &self.config),
                (None, Some(asked)) => asked.to_owned(),
                (None, None) => continue,
            };
            if !self.accepted.contains(&name) && !is_no_wider(&name, &self.config.worker.policy) {
                wider.entry(name).or_insert((0, one.first)).0 += one.tasks;
            }
        }
        if wider.is_empty() {
            return Ok(());
        }
        let named = wider.iter().map(|(name, (count, first))| {
            format!("{} under `{name}` (such as {first})", Counted(*count, "task"))
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let flags: Vec<String> = wider.keys().map(|name| format!("--accept-policy {name}")).collect();
        Err(kernel::Error::conflict(
            format!(
                "the import would run {named}, and the default policy is `{}`",
                self.config.worker.policy
            ),
            format!("nothing was imported; look at the tasks, and import them with {}", flags.join(" ")),
        ))
    }
}

/// Returns true if a policy is the default, or is shipped and narrower than a default that is shipped too. The names of
/// shipped policies are sorted from the narrowest to the widest.
fn is_no_wider(name: &str, default: &str) -> bool {
    let place = |name: &str| policies::Policy::builtin_names().iter().position(|shipped| *shipped == name);
    name == default || matches!((place(name), place(default)), (Some(own), Some(other)) if own < other)
}

/// Imports a source into a board. Returns the result, and the description of the exported board.
fn read_rows(
    source: ImportSource,
    handle: &BoardHandle,
    actor: Actor,
    terms: ImportTerms,
) -> Result<(ImportReport, Option<Details>), Failure> {
    let board = handle.name().clone();
    let blobs = handle.blobs().clone();
    // The lock excludes sweeps until the commit, because no row refers to the stored files before.
    let _unswept = blobs.private().and_then(|_| blobs.unswept()).map_err(kernel::Error::from)?;
    match source {
        ImportSource::Lines(mut lines) => {
            let read = handle.writer()?.call(move |board| {
                let imported = board.import(&mut lines, &blobs, &actor)?;
                board.require_workspaces(&unfit_workspace)?;
                terms.require(board)?;
                match (terms.open, board.open_runs()?.first()) {
                    (OpenRuns::Refused, Some(run)) => Err(kernel::Error::conflict(
                        format!("the export has a run that was still open: {} of {}", run.id, run.task_id),
                        "stop the daemon and import again; the next daemon settles such runs when it starts",
                    )),
                    _ => Ok(imported),
                }
            })?;
            let kernel::Imported { rows, files, details } = read;
            let imported = ImportReport { board, rows, files, changed: Vec::new(), left: Vec::new() };
            Ok((imported, details.and_then(Details::of_record)))
        }
        ImportSource::Peer { board: peer, database, copy: _copy } => {
            let (stored, missing) = peer_files::take(&peer, &database, &blobs)?;
            let files = stored.values().map(|file| &file.sha256).collect::<BTreeSet<_>>().len();
            let adopted = handle.writer()?.call(move |board| {
                let mut adopted = board.adopt(&peer, &stored, &actor)?;
                let mended = board.mend_workspaces(&unfit_workspace)?;
                if mended > 0 {
                    adopted.changed.push(format!(
                        "{mended} workspaces have paths that none can have here: they are scratch directories"
                    ));
                }
                terms.require(board)?;
                Ok(adopted)
            })?;
            let Adopted { taken: rows, changed, mut left } = adopted;
            left.extend(missing);
            let files = u64::try_from(files).unwrap_or(u64::MAX);
            Ok((ImportReport { board, rows, files, changed, left }, None))
        }
    }
}

/// Board to import, as it was opened.
#[expect(missing_debug_implementations, reason = "a reader of any kind")]
pub enum ImportSource {
    /// Output of `export`.
    Lines(Box<dyn BufRead + Send>),
    /// A board of `hermes kanban`.
    Peer {
        board: Box<PeerBoard>,
        /// Path of its database.
        database: PathBuf,
        /// Private directory with the copy of the database that is read.
        copy: TempDir,
    },
}

impl ImportSource {
    /// Opens a file written by `export`.
    pub fn lines(path: &Path) -> Result<Self, Failure> {
        let wanted = "a file written by `supervisor export`";
        let failed = |e: std::io::Error| Failure::named_file("open", path, &e, wanted);
        // The daemon may open the file, and must not wait for the writer of a FIFO (open(2)).
        let waits_for_nobody = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = File::options().read(true).custom_flags(waits_for_nobody).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Failure::usage(format!("{} is not a regular file", path.display()))
                .hint("name a file written by `supervisor export`, or use `-` for standard input"));
        }
        Ok(ImportSource::Lines(Box::new(BufReader::new(file))))
    }

    /// Reads a database of `hermes kanban` from a copy in a directory beneath `private`.
    pub fn peer(path: &Path, private: &Path) -> Result<Self, Failure> {
        // `tempfile` makes the directory with mode 0700, so that the copy is as private as the board.
        let scratch = tempfile::Builder::new()
            .prefix("import-")
            .tempdir_in(private)
            .map_err(|e| Failure::file("make a directory in", private, &e))?;
        let peer = PeerBoard::read(path, scratch.path()).map_err(|error| {
            let foreign = matches!(error, kernel::OpenError::NotABoard { .. });
            let is_no_file = matches!(error, kernel::OpenError::NotAFile { .. });
            let failure = Failure::from(error);
            match failure.code {
                Code::NotPermitted => failure,
                _ if is_no_file => Failure { code: Code::Usage, ..failure }.hint(THEIR_PLACE),
                _ if foreign => Failure::usage(format!("{} has no tasks of `hermes kanban`", path.display()))
                    .hint(THEIR_PLACE),
                _ => failure.hint(THEIR_PLACE),
            }
        })?;
        Ok(ImportSource::Peer { board: Box::new(peer), database: path.to_owned(), copy: scratch })
    }
}
