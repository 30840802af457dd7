//! Preview of an upgrade: the live runs, boards and configuration that this release would adopt. Only reads, beside any
//! running daemon.
//!
//! See decision 0136.

use std::io::ErrorKind;
use std::path::Path;

use kernel::{BoardName, Finding, Schema};
use serde::{Deserialize, Serialize};
use shim::rundir::{self, RunDir, RunDirError};

use super::host;
use base::failure::Failure;
use base::paths::Root;

/// Result of a preview.
#[derive(Debug, Serialize, Deserialize)]
pub struct Adoption {
    pub ok: bool,
    pub version: String,
    /// Versions of run directories that it reads.
    pub run_directories: Versions,
    pub runs: Vec<RunFound>,
    pub boards: Vec<BoardFound>,
    /// Configuration, with a check for each faulty file.
    pub configuration: Vec<Finding>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Versions {
    pub oldest: u32,
    pub newest: u32,
}

/// A run that is not over.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunFound {
    pub board: BoardName,
    /// Number of the run, which names its directory.
    pub run: i64,
    /// Task, if the directory has it.
    pub task: Option<String>,
    /// Version of its directory, if readable.
    pub version: Option<u32>,
    /// True if its worker has ended, and only the end is not recorded yet.
    pub has_ended: bool,
    /// True if this release takes it over.
    pub adopted: bool,
    /// Reason against taking it over.
    pub why: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct BoardFound {
    pub board: BoardName,
    /// Version of its schema, if readable.
    pub schema: Option<i64>,
    /// Newest schema that this release knows.
    pub known: Option<i64>,
    /// True if this release serves it.
    pub served: bool,
    /// True if the first start changes the schema, so that earlier releases cannot read it.
    pub migrated: bool,
    /// Reason against serving it.
    pub why: Option<String>,
    /// Action that helps.
    pub hint: Option<String>,
}

/// Examines a root.
pub fn adoption(root: &Root) -> Result<Adoption, Failure> {
    let names = root.board_names()?;
    let mut runs = Vec::new();
    for name in &names {
        runs.extend(runs_of(root, name)?);
    }
    let boards: Vec<BoardFound> = names.into_iter().map(|name| board(root, name)).collect();
    let configuration = host::configuration(root);
    let is_valid = !configuration.iter().any(Finding::is_error);
    Ok(Adoption {
        ok: is_valid && runs.iter().all(|run| run.adopted) && boards.iter().all(|board| board.served),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run_directories: Versions { oldest: rundir::OLDEST, newest: rundir::VERSION },
        runs,
        boards,
        configuration,
    })
}

/// Returns the runs of a board that have a directory, as every run in progress does.
fn runs_of(root: &Root, board: &BoardName) -> Result<Vec<RunFound>, Failure> {
    let dir = root.runs(board);
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Failure::file("list the runs in", &dir, &e)),
    };
    let mut runs: Vec<RunFound> = entries
        .flatten()
        .filter_map(|entry| {
            let run = entry.file_name().to_str()?.parse().ok()?;
            run_of(&entry.path(), board, run)
        })
        .collect();
    runs.sort_by_key(|run| run.run);
    Ok(runs)
}

/// Examines a run; none if it has ended meanwhile. Does not take its lock: a starting shim must find it free.
fn run_of(path: &Path, board: &BoardName, run: i64) -> Option<RunFound> {
    let found = RunFound {
        board: board.clone(),
        run,
        task: None,
        version: None,
        has_ended: false,
        adopted: false,
        why: None,
    };
    let dir = match RunDir::open(path) {
        Ok(dir) => dir,
        Err(RunDirError::Open { source, .. }) if source.kind() == ErrorKind::NotFound => return None,
        Err(error) => return Some(RunFound { why: Some(base::failure::with_causes(&error)), ..found }),
    };
    let version = match dir.version() {
        Ok(version) => version,
        // The run has ended since, and its directory was removed.
        Err(_) if !path.exists() => return None,
        Err(error) => return Some(RunFound { why: Some(base::failure::with_causes(&error)), ..found }),
    };
    let found = RunFound { version: Some(version), ..found };
    if !rundir::is_known(version) {
        let known = rundir::versions(rundir::OLDEST, rundir::VERSION);
        let why = format!("its run directory has version {version}, and this release reads {known}");
        return Some(RunFound { why: Some(why), ..found });
    }
    match dir.spec() {
        Ok(spec) => Some(RunFound {
            task: Some(spec.task),
            has_ended: dir.exit().is_ok_and(|record| record.is_some()),
            adopted: true,
            ..found
        }),
        Err(error) => Some(RunFound { why: Some(base::failure::with_causes(&error)), ..found }),
    }
}

fn board(root: &Root, board: BoardName) -> BoardFound {
    match kernel::schema_of(&root.board(&board)) {
        Ok(Schema { found, known }) => {
            let is_newer = found > known;
            BoardFound {
                board,
                schema: Some(found),
                known: Some(known),
                served: !is_newer,
                migrated: found < known,
                why: is_newer.then(|| format!("it has schema {found}, and this release knows {known}")),
                hint: is_newer.then(|| "use a newer release, or restore a backup that is older".to_owned()),
            }
        }
        Err(error) => BoardFound {
            board,
            schema: None,
            known: None,
            served: false,
            migrated: false,
            why: Some(error.to_string()),
            hint: error.hint(),
        },
    }
}
