//! Writes files that only the daemon's user may read.

use std::io::{Result, Write as _};
use std::path::Path;

/// Replaces a file atomically, with mode 0600. A concurrent reader, or a reader after a crash, sees the old text or
/// the new.
pub fn write(path: &Path, text: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    // `tempfile` makes its files with mode 0600.
    let mut draft = tempfile::NamedTempFile::new_in(dir)?;
    draft.write_all(text)?;
    draft.as_file().sync_all()?;
    draft.persist(path).map(drop).map_err(|e| e.error)
}
