//! `restore` at the command line: replaces a board that is not in use by a backup.
//!
//! The daemon has to be stopped: a file that is replaced under it could bring back a run whose claim it has released.

use std::path::PathBuf;

use kernel::{BoardName, Clock as _, RestoreTerms, RunId, SystemClock, UnfitRows};
use serde::Serialize;

use super::CommandLine;
use crate::client::Client;
use base::exit::Code;
use base::failpoint;
use base::failure::Failure;
use base::owner::{OwnerLock, Role};
use base::paths::{Root, make_dir};
use base::terminal::{complain, printable};
use service::details::Details;
use upkeep::transfer::{attached, unfit_workspace};

/// Replace the board with a backup
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Stop the daemon first. The board is restored with its attached files and details. The
replaced file is kept beside the board; files attached since the backup stay until
`supervisor gc`. The next daemon ends workers whose runs the backup does not know.

Examples:
  supervisor stop --wait && supervisor restore /var/backups/board.db
  supervisor --board releases restore releases.db")]
pub(super) struct Restore {
    /// The backup
    pub(super) file: PathBuf,
    /// Restore rows with values that no board has, too
    #[arg(long)]
    pub(super) accept_rows: bool,
}

/// A board that was put back.
#[derive(Debug, Serialize)]
struct RestoredRoot {
    board: BoardName,
    board_id: kernel::BoardId,
    path: PathBuf,
    replaced: Option<PathBuf>,
    /// Attached files whose bytes are not there.
    missing: Vec<String>,
    /// Restored rows with values that no board has.
    unfit: Vec<String>,
}

pub(super) async fn run(line: &CommandLine, verb: Restore) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    let (root, board) = (client.root(), client.board());
    root.create()?;
    let _lock = lock(root)?;
    let path = root.board(board);
    if let Some(dir) = path.parent() {
        make_dir(dir, 0o700)?;
    }
    let last_run = last_run_dir(root, board);
    let now = SystemClock.now();
    let unfit = if verb.accept_rows { UnfitRows::Kept } else { UnfitRows::Refused };
    let terms = RestoreTerms { runs: last_run, now, workspace: &unfit_workspace, unfit };
    let restored = kernel::restore_board(&path, &verb.file, &terms, &failpoint::pass).map_err(|error| {
        use kernel::OpenError as E;
        let hint = match error {
            E::Missing { .. }
            | E::Empty { .. }
            | E::Truncated { .. }
            | E::NotAFile { .. }
            | E::NotABoard { .. }
            | E::Corrupt { .. } => Some("name a file written by `supervisor backup`"),
            E::OlderFormat { .. } => Some("name a backup of release 0.1.0 or a later one"),
            _ => None,
        };
        if let Some(dir) = path.parent() {
            // Removes the directory of a board that did not exist before, which would be listed as damaged.
            // `remove_dir` keeps a directory with files.
            drop(std::fs::remove_dir(dir));
        }
        let is_no_file = matches!(error, E::NotAFile { .. });
        let failure = Failure::from(error);
        let code = if is_no_file { Code::Usage } else { failure.code };
        let failure = Failure { code, ..failure };
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let details = restored.details.as_deref().and_then(Details::parse);
    if let (Some(details), Some(dir)) = (details, path.parent()) {
        details.write(dir)?;
    }
    let (_, missing) = attached::flaws(root, board)?;
    let restored = RestoredRoot {
        board: board.clone(),
        board_id: restored.board,
        path,
        replaced: restored.replaced,
        missing,
        unfit: restored.unfit,
    };
    if output.json() {
        output.value(&restored)?;
        return Ok(0);
    }
    let mut text =
        format!("Restored board {} from {}\n", restored.board, printable(&verb.file.display().to_string()));
    if let Some(replaced) = &restored.replaced {
        text.push_str("The replaced board is kept as ");
        text.push_str(&printable(&replaced.display().to_string()));
        text.push('\n');
    }
    output.text(&text)?;
    for row in &restored.unfit {
        complain(&format!("warning: {} has a value that no board has", printable(row)));
    }
    if !restored.missing.is_empty() {
        complain(&format!("warning: {}", attached::listed(&restored.missing)));
        complain(
            "hint: the backup does not have them either; `supervisor attach` the same files again, or `supervisor attach-rm`",
        );
    }
    Ok(0)
}

/// Refuses work on files from inside a run, whose token gives no access to them.
pub(super) fn refuse_worker(client: &Client) -> Result<(), Failure> {
    match client.worker() {
        None => Ok(()),
        Some(_) => Err(Failure::new(Code::NotPermitted, "this command is not for workers")
            .hint("outside a run, unset SUPERVISOR_TOKEN")),
    }
}

/// Takes the root's lock. Fails with the name of its owner.
pub(super) fn lock(root: &Root) -> Result<OwnerLock, Failure> {
    OwnerLock::try_acquire(root, Role::Files)?.ok_or_else(|| {
        let owner = OwnerLock::owner(root).unwrap_or_default();
        Failure::new(Code::Conflict, format!("the boards of {} are in use: {owner}", root.dir().display()))
            .hint(
                "stop the daemon first: supervisor stop --wait (or --leave --wait, which keeps the workers running)",
            )
    })
}

/// Returns the highest number among the run directories of a board.
fn last_run_dir(root: &Root, board: &BoardName) -> RunId {
    let entries = std::fs::read_dir(root.runs(board)).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    RunId(numbers.max().unwrap_or(0))
}
