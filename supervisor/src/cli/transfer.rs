//! `export` and `import` at the command line: a board as JSON Lines, and boards that come from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{
    Actor, Adopted, Blobs, BoardName, Exported, Extent, Lack, PeerBoard, Readers, Sweep, SystemClock,
};
use serde::Serialize;
use serde_json::json;

use super::restore::{lock, refuse_worker};
use super::{CommandLine, attached, peer_files};
use crate::api::person;
use crate::config::Config;
use crate::details::Details;
use crate::exit::Code;
use crate::failure::Failure;
use crate::service::{BoardHandle, Mode, Service};
use crate::terminal::complain;

/// Where the other program keeps its boards.
const THEIR_PLACE: &str = "its boards are kanban.db in its home, and kanban/boards/<slug>/kanban.db there";

/// Export the whole board as JSON Lines
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The export holds every row as of one moment, the attached files and the board's
details; the board may be in use. `import` reads it into an empty board. A missing or
altered attachment is reported and left out.

Examples:
  supervisor export > board.jsonl
  supervisor --board releases export --file releases.jsonl")]
pub(super) struct Export {
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "file")]
    force: bool,
}

/// Import a board into an empty one
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Stop the daemon first. The import is all or nothing. The board is created if it does
not exist. A database of `hermes kanban` is read from a copy and never written to;
its attached files are copied. What is converted or left out is reported.

Examples:
  supervisor --board copy import board.jsonl
  supervisor --board old import --from-hermes ~/.hermes/kanban.db")]
pub(super) struct Import {
    /// A file written by `supervisor export`; `-` is standard input
    #[arg(required_unless_present = "from_hermes")]
    file: Option<PathBuf>,
    /// Import a database of `hermes kanban`
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    from_hermes: Option<PathBuf>,
}

/// What an import has brought.
#[derive(Debug, Serialize)]
struct Imported {
    board: BoardName,
    rows: BTreeMap<String, u64>,
    /// How many attached files.
    files: u64,
    changed: Vec<String>,
    left: Vec<String>,
}

pub(super) async fn export(line: &CommandLine, verb: Export) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    let path = client.root().board(client.board());
    let readers = Readers::open(&path, Arc::new(SystemClock))?;
    let blobs = Blobs::beside(&path);
    let details = Details::read(path.parent().unwrap_or(&path)).as_value()?;
    let write = |out: &mut dyn Write| readers.with(|view| view.export(&blobs, Some(details), out));
    let Some(file) = &verb.file else {
        let exported = write(&mut BufWriter::new(std::io::stdout().lock()))?;
        warn(&exported.lacks);
        return Ok(0);
    };
    if !verb.force && file.symlink_metadata().is_ok() {
        return Err(Failure::new(Code::Conflict, format!("{} exists already", file.display()))
            .hint("choose another name, or replace it with --force"));
    }
    let fail = |e: &std::io::Error| Failure::file("write", file, e);
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = tempfile::NamedTempFile::new_in(dir).map_err(|e| fail(&e))?;
    let Exported { rows, files, lacks } = write(&mut BufWriter::new(draft.as_file_mut()))?;
    draft.as_file_mut().flush().and_then(|()| draft.as_file().sync_all()).map_err(|e| fail(&e))?;
    if verb.force { draft.persist(file) } else { draft.persist_noclobber(file) }
        .map_err(|e| fail(&e.error))?;
    if output.json() {
        let missing: Vec<String> = lacks.iter().map(ToString::to_string).collect();
        let board = client.board();
        output.value(
            &json!({ "board": board, "file": file, "rows": rows, "files": files, "missing": missing }),
        )?;
    } else {
        let total: u64 = rows.values().sum();
        let (board, to) = (client.board(), file.display());
        output.text(&format!("Exported board {board} to {to} ({total} rows, {files} attached files)\n"))?;
        warn(&lacks);
    }
    Ok(0)
}

/// Names the attached files that are not in an export.
fn warn(lacks: &[Lack]) {
    if !lacks.is_empty() {
        let lacks: Vec<String> = lacks.iter().map(ToString::to_string).collect();
        complain(&format!("warning: {}", attached::listed(&lacks)));
    }
}

pub(super) async fn import(line: &CommandLine, verb: Import) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    let root = client.root();
    root.create()?;
    let _lock = lock(root)?;
    let source = Source::open(&verb, root.dir())?;
    let service = Service::new(root.clone(), Config::load(root)?, Mode::Offline);
    let board = service.create_board(client.board())?;
    let actor = person(nix::unistd::getuid().as_raw());
    let name = client.board().clone();
    let imported = read(source, &board, name, actor).and_then(|(mut imported, details)| {
        imported.left.extend(attached::flaws(root, client.board())?.1);
        if let (Some(details), Some(dir)) = (details, root.board(client.board()).parent()) {
            details.write(dir)?;
        }
        Ok(imported)
    });
    let imported = match imported {
        Ok(imported) => imported,
        Err(failure) => {
            // All or nothing: files that were stored for rows that are not there go. The first failure is the one to tell.
            drop(board.sweep_blobs(&Extent::All, Sweep::Remove));
            return Err(failure);
        }
    };
    if output.json() {
        output.value(&imported)?;
        return Ok(0);
    }
    let told = imported.rows.iter().filter(|(_, count)| **count > 0);
    let told: Vec<String> = told.map(|(table, count)| format!("  {count} {table}\n")).collect();
    let files = format!("  {} attached files\n", imported.files);
    let files = if imported.files > 0 { files } else { String::new() };
    output.text(&format!("Imported into board {}:\n{}{files}", imported.board, told.concat()))?;
    for (head, lines) in [("changed", &imported.changed), ("not taken", &imported.left)] {
        for line in lines {
            complain(&format!("{head}: {line}"));
        }
    }
    Ok(0)
}

/// Reads a source into a board. Returns what has come, and what people said of the board where it was before.
fn read(
    source: Source,
    handle: &BoardHandle,
    board: BoardName,
    actor: Actor,
) -> Result<(Imported, Option<Details>), Failure> {
    let blobs = handle.blobs().clone();
    // Held to the commit: until then no row names what is stored.
    let _unswept = blobs.private().and_then(|_| blobs.unswept()).map_err(kernel::Error::from)?;
    match source {
        Source::Lines(mut lines) => {
            let read = handle.writer()?.call(move |board| board.import(&mut lines, &blobs, &actor))?;
            let kernel::Imported { rows, files, details } = read;
            let imported = Imported { board, rows, files, changed: Vec::new(), left: Vec::new() };
            Ok((imported, details.and_then(|details| serde_json::from_value(details).ok())))
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

enum Source {
    Lines(Box<dyn BufRead + Send>),
    /// With where its database is.
    Peer(PeerBoard, PathBuf),
}

impl Source {
    fn open(verb: &Import, private: &Path) -> Result<Self, Failure> {
        if let Some(path) = &verb.from_hermes {
            // Made with mode 0700: the copy is as private as the board.
            let scratch = tempfile::Builder::new()
                .prefix("import-")
                .tempdir_in(private)
                .map_err(|e| Failure::file("make a directory in", private, &e))?;
            let peer = PeerBoard::read(path, scratch.path()).map_err(|error| {
                let foreign = matches!(error, kernel::OpenError::NotABoard { .. });
                let failure = Failure::from(error);
                match failure.code {
                    Code::NotPermitted => failure,
                    _ if foreign => {
                        Failure::usage(format!("{} has no tasks of `hermes kanban`", path.display()))
                            .hint(THEIR_PLACE)
                    }
                    _ => failure.hint(THEIR_PLACE),
                }
            })?;
            return Ok(Source::Peer(peer, path.clone()));
        }
        match &verb.file {
            Some(path) if path.as_os_str() != "-" => {
                let file = std::fs::File::open(path).map_err(|e| {
                    let failure = Failure::file("open", path, &e);
                    if e.kind() == std::io::ErrorKind::NotFound {
                        Failure { code: Code::NotFound, ..failure }
                            .hint("name a file that `supervisor export` has written")
                    } else {
                        failure
                    }
                })?;
                Ok(Source::Lines(Box::new(BufReader::new(file))))
            }
            Some(_) | None => Ok(Source::Lines(Box::new(BufReader::new(std::io::stdin())))),
        }
    }
}
