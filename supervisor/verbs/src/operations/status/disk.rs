//! The room on the disk that has the root.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The room of a file system, in bytes.
#[derive(Debug, Serialize, Deserialize)]
pub struct DiskSpace {
    pub(crate) total_bytes: u64,
    /// Space that an ordinary user may still write.
    pub(crate) free_bytes: u64,
}

impl DiskSpace {
    /// Space of the file system of a directory; none if it is unknown.
    pub(super) fn of_directory(dir: &Path) -> Option<Self> {
        let system = rustix::fs::statvfs(dir).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize);
        Some(DiskSpace { total_bytes: bytes(system.f_blocks), free_bytes: bytes(system.f_bavail) })
    }
}
