//! Writes files that define something by name: a profile, a tenant, a schedule.

use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::make_dir;
use crate::failure::Failure;

/// Replaces a world-readable file atomically, and makes its directory if missing. A concurrent reader sees the old
/// text or the new.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let fail = |e: io::Error| Failure::file("write", path, &e);
    let dir = path.parent().unwrap_or(Path::new("/"));
    make_dir(dir, 0o755)?;
    let mut draft = tempfile::NamedTempFile::new_in(dir).map_err(fail)?;
    draft.write_all(text.as_bytes()).map_err(fail)?;
    draft.as_file().set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(fail)?;
    draft.as_file().sync_all().map_err(fail)?;
    draft.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}
