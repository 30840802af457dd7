//! Boards from elsewhere, read into an empty one: all or nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use kernel::{Actor, Adopted, BoardName, Extent, PeerBoard, Sweep};
use serde::{Deserialize, Serialize};

use super::attached;
use super::peer_files;
use crate::exit::Code;
use crate::failure::Failure;
use crate::service::details::Details;
use crate::service::{BoardHandle, Service};

/// Where the other program keeps its boards.
const THEIR_PLACE: &str =
    "the boards of `hermes kanban` are kanban.db and kanban/boards/<slug>/kanban.db in its home directory";

/// What an import has brought.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Imported {
    pub(crate) board: BoardName,
    pub(crate) rows: BTreeMap<String, u64>,
    /// How many attached files.
    pub(crate) files: u64,
    /// What means something else here.
    pub(crate) changed: Vec<String>,
    /// What was not taken.
    pub(crate) left: Vec<String>,
}

/// Reads a source into a board that has nothing yet.
pub(crate) fn read(
    source: Source,
    service: &Service,
    board: &BoardHandle,
    actor: Actor,
) -> Result<Imported, Failure> {
    let root = service.root();
    let open = if service.daemon().is_some() { OpenRuns::Refused } else { OpenRuns::Kept };
    let imported = read_rows(source, board, actor, open).and_then(|(mut imported, details)| {
        imported.left.extend(attached::flaws(root, board.name())?.1);
        if let (Some(details), Some(dir)) = (details, root.board(board.name()).parent()) {
            details.write(dir)?;
        }
        Ok(imported)
    });
    if imported.is_err() {
        // Files that were stored for rows that are not there go. The first failure is the one to tell.
        drop(board.sweep_blobs(&Extent::All, Sweep::Remove));
    }
    imported
}

/// Reads a source into a board. Returns what has come, and what people said of the board where it was before.
/// What becomes of runs that are open in an export. A daemon finds out what became of them when it starts.
#[derive(Clone, Copy)]
enum OpenRuns {
    Kept,
    Refused,
}

fn read_rows(
    source: Source,
    handle: &BoardHandle,
    actor: Actor,
    open: OpenRuns,
) -> Result<(Imported, Option<Details>), Failure> {
    let board = handle.name().clone();
    let blobs = handle.blobs().clone();
    // Held to the commit: until then no row names what is stored.
    let _unswept = blobs.private().and_then(|_| blobs.unswept()).map_err(kernel::Error::from)?;
    match source {
        Source::Lines(mut lines) => {
            let read = handle.writer()?.call(move |board| {
                let imported = board.import(&mut lines, &blobs, &actor)?;
                match (open, board.open_runs()?.first()) {
                    (OpenRuns::Refused, Some(run)) => Err(kernel::Error::conflict(
                        format!("the export has a run that was still open: {} of {}", run.id, run.task_id),
                        "stop the daemon and import again; the next daemon settles such runs when it starts",
                    )),
                    _ => Ok(imported),
                }
            })?;
            let kernel::Imported { rows, files, details } = read;
            let imported = Imported { board, rows, files, changed: Vec::new(), left: Vec::new() };
            Ok((imported, details.and_then(Details::of_record)))
        }
        Source::Peer(peer, database) => {
            let (stored, missing) = peer_files::take(&peer, &database, &blobs);
            let files = stored.values().map(|file| &file.sha256).collect::<BTreeSet<_>>().len();
            let adopted = handle.writer()?.call(move |board| board.adopt(&peer, &stored, &actor))?;
            let Adopted { taken: rows, changed, mut left } = adopted;
            left.extend(missing);
            let files = u64::try_from(files).unwrap_or(u64::MAX);
            Ok((Imported { board, rows, files, changed, left }, None))
        }
    }
}

/// What is read.
pub(crate) enum Source {
    /// What `export` has written.
    Lines(Box<dyn BufRead + Send>),
    /// A board of `hermes kanban`, with where its database is.
    Peer(PeerBoard, PathBuf),
}

impl Source {
    /// A file that `export` has written.
    pub(crate) fn lines(path: &Path) -> Result<Self, Failure> {
        let wanted = "a file written by `supervisor export`";
        let failed = |e: std::io::Error| Failure::named_file("open", path, &e, wanted);
        // It is the daemon that reads, which must not wait for the writer of a pipe.
        let waits_for_nobody = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = File::options().read(true).custom_flags(waits_for_nobody).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Failure::usage(format!("{} is not a regular file", path.display()))
                .hint("name a file written by `supervisor export`, or use `-` for standard input"));
        }
        Ok(Source::Lines(Box::new(BufReader::new(file))))
    }

    /// A database of `hermes kanban`, which is copied into a private directory to be read.
    pub(crate) fn peer(path: &Path, private: &Path) -> Result<Self, Failure> {
        // Made with mode 0700: the copy is as private as the board.
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
        Ok(Source::Peer(peer, path.to_owned()))
    }
}
