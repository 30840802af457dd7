//! Identity of a directory, by which it is leased.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// Identity of a directory under any name: its device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
}

impl FileIdentity {
    pub fn from_stat(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}
