//! Export of a board as JSON Lines.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{Blobs, BoardName, Existing, Readers, SystemClock, Tenant};
use serde::{Deserialize, Serialize};

use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use service::details::Details;

/// Counts of an export, and the files that it lacks.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportReport {
    pub board: BoardName,
    /// File that was written; none for a stream.
    pub file: Option<PathBuf>,
    /// Number of rows of each table.
    pub rows: BTreeMap<String, u64>,
    /// Number of attached files.
    pub files: u64,
    /// Attached files without bytes in the export, each with the reason.
    pub missing: Vec<String>,
}

/// Exports a board, or its part of a tenant, as of one moment. The board may be in use.
pub fn to_stream(
    root: &Root,
    board: &BoardName,
    tenant: Option<&Tenant>,
    out: &mut dyn Write,
) -> Result<ExportReport, Failure> {
    let path = root.board(board);
    let readers = Readers::open(&path, Arc::new(SystemClock))?;
    let blobs = Blobs::of_board(&path);
    let details = Details::read(path.parent().unwrap_or(&path)).as_value()?;
    let kernel::Exported { rows, files, lacks } = readers.with(|view| match tenant {
        Some(tenant) => view.export_tenant(tenant, &blobs, out),
        None => view.export(&blobs, Some(details), out),
    })?;
    let missing = lacks.iter().map(ToString::to_string).collect();
    Ok(ExportReport { board: board.clone(), file: None, rows, files, missing })
}

/// Exports a board to a file, which appears once all of it is durable.
pub fn to_file(
    root: &Root,
    board: &BoardName,
    tenant: Option<&Tenant>,
    file: &Path,
    existing: Existing,
) -> Result<ExportReport, Failure> {
    if existing == Existing::Keep && file.symlink_metadata().is_ok() {
        return Err(Failure::new(Code::Conflict, format!("{} already exists", file.display()))
            .hint("choose another name, or replace it with --force"));
    }
    let fail =
        |e: &std::io::Error| Failure::named_file("write", file, e, "a file in a directory that exists");
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = tempfile::NamedTempFile::new_in(dir).map_err(|e| fail(&e))?;
    let exported = to_stream(root, board, tenant, &mut BufWriter::new(draft.as_file_mut()))?;
    draft.as_file_mut().flush().and_then(|()| draft.as_file().sync_all()).map_err(|e| fail(&e))?;
    let persisted = match existing {
        Existing::Replace => draft.persist(file),
        Existing::Keep => draft.persist_noclobber(file),
    };
    persisted.map_err(|e| fail(&e.error))?;
    Ok(ExportReport { file: Some(file.to_owned()), ..exported })
}
