//! `export` and `import` at the command line: a board as JSON Lines, and boards that come from elsewhere.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{Adopted, BoardName, PeerBoard, Readers, SystemClock};
use serde::Serialize;

use super::restore::{lock, refuse_worker};
use super::{Output, attached, peer_files};
use crate::api::person;
use crate::client::Client;
use crate::config::Config;
use crate::exit::Code;
use crate::failure::Failure;
use crate::service::{Mode, Service};
use crate::terminal::complain;

/// Where the other program keeps its boards.
const THEIR_PLACE: &str = "its boards are kanban.db in its home, and kanban/boards/<slug>/kanban.db there";

/// Write the whole board as JSON Lines
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Every row of every table, as of one moment; the board may be in use. `import`
reads it into an empty board. The bytes of attached files are not in it: copy
boards/<board>/attachments beside the new board.

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

/// Read a board from elsewhere into an empty one
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The daemon has to be stopped. All is taken or nothing. The board is made if it
does not exist. A database of `hermes kanban` is read from a copy and never
written to, its attached files are copied; what means something else here, and what was not taken, is told.

Examples:
  supervisor --board copy import board.jsonl
  supervisor --board old import --from-hermes ~/.hermes/kanban.db")]
pub(super) struct Import {
    /// A file that `supervisor export` has written; `-` is standard input
    #[arg(required_unless_present = "from_hermes")]
    file: Option<PathBuf>,
    /// Take over a database of `hermes kanban`
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    from_hermes: Option<PathBuf>,
}

/// What an import has brought.
#[derive(Debug, Serialize)]
struct Imported {
    board: BoardName,
    rows: BTreeMap<String, u64>,
    changed: Vec<String>,
    left: Vec<String>,
}

pub(super) fn export(client: &Client, verb: &Export, output: Output) -> Result<u8, Failure> {
    refuse_worker(client)?;
    let readers = Readers::open(&client.root().board(client.board()), Arc::new(SystemClock))?;
    let Some(file) = &verb.file else {
        let mut out = BufWriter::new(std::io::stdout().lock());
        readers.with(|view| view.export(&mut out))?;
        return Ok(0);
    };
    if !verb.force && file.symlink_metadata().is_ok() {
        return Err(Failure::new(Code::Conflict, format!("{} exists already", file.display()))
            .hint("choose another name, or replace it with --force"));
    }
    let fail = |e: &std::io::Error| Failure::file("write", file, e);
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = tempfile::NamedTempFile::new_in(dir).map_err(|e| fail(&e))?;
    let rows = readers.with(|view| view.export(&mut BufWriter::new(draft.as_file_mut())))?;
    draft.as_file_mut().flush().and_then(|()| draft.as_file().sync_all()).map_err(|e| fail(&e))?;
    if verb.force { draft.persist(file) } else { draft.persist_noclobber(file) }
        .map_err(|e| fail(&e.error))?;
    if output.json() {
        output.value(&serde_json::json!({ "board": client.board(), "file": file, "rows": rows }))?;
    } else {
        let total: u64 = rows.values().sum();
        output.text(&format!("Exported board {} to {} ({total} rows)\n", client.board(), file.display()))?;
    }
    Ok(0)
}

pub(super) fn import(client: &Client, verb: &Import, output: Output) -> Result<u8, Failure> {
    refuse_worker(client)?;
    let root = client.root();
    root.create()?;
    let _lock = lock(root)?;
    let source = Source::open(verb, root.dir())?;
    let service = Service::new(root.clone(), Config::load(root)?, Mode::Offline);
    let board = service.create_board(client.board())?;
    let actor = person(nix::unistd::getuid().as_raw());
    let Adopted { taken, changed, left } = match source {
        Source::Lines(mut lines) => {
            let job = move |board: &mut kernel::Board<'_>| board.import(&mut lines, &actor);
            Adopted { taken: board.writer()?.call(job)?, ..Adopted::default() }
        }
        Source::Peer(peer, database) => {
            let (stored, missing) = peer_files::take(&peer, &database, board.blobs());
            let files = stored.iter().map(|(id, (file, _))| (*id, file.clone())).collect();
            let mut adopted = board.writer()?.call(move |board| board.adopt(&peer, &files, &actor))?;
            // Until here no sweep takes what was stored for nobody's.
            drop(stored);
            adopted.left.extend(missing);
            adopted
        }
    };
    let mut left = left;
    left.extend(attached::flaws(root, client.board())?.1);
    let imported = Imported { board: client.board().clone(), rows: taken, changed, left };
    if output.json() {
        output.value(&imported)?;
        return Ok(0);
    }
    let told = imported.rows.iter().filter(|(_, count)| **count > 0);
    let told: Vec<String> = told.map(|(table, count)| format!("  {count} {table}\n")).collect();
    output.text(&format!("Imported into board {}:\n{}", imported.board, told.concat()))?;
    for (head, lines) in [("changed", &imported.changed), ("not taken", &imported.left)] {
        for line in lines {
            complain(&format!("{head}: {line}"));
        }
    }
    Ok(0)
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
