//! A file that nobody but the user of the daemon reads.

use std::io::{Result, Write as _};
use std::path::Path;

/// Writes it, with the mode 0600. What reads it meanwhile, or after a crash, has the old one or the new one.
pub(crate) fn write(path: &Path, text: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    // A temporary file of this crate has the mode 0600.
    let mut draft = tempfile::NamedTempFile::new_in(dir)?;
    draft.write_all(text)?;
    draft.as_file().sync_all()?;
    draft.persist(path).map(drop).map_err(|e| e.error)
}
