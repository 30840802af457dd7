//! Measures a directory tree on disk without following a link or leaving its file system.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, statat};
use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::open::{self, OpenError};
use crate::tree::TreeError;

/// Limit on the depth: each level holds a descriptor.
const DEPTH: usize = 128;

/// Size of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Bytes on disk, as far as could be seen.
    pub bytes: u64,
    /// Files and directories beneath the top.
    pub entries: u64,
}

/// Measures the directory `base/name`. Directories that cannot be read, or lie too deep, are not counted.
pub fn measure(base: &Path, name: &Name) -> Result<Size, TreeError> {
    let parent = open::trusted(base).map_err(TreeError::OpenBase)?;
    let top = open::child(&parent.fd, Path::new(name.as_str()), &base.join(name.as_str()));
    let mut size = Size::default();
    match top {
        Ok(top) => add(&top.fd, DEPTH, &mut size),
        Err(OpenError::Missing { .. }) => {}
        Err(source) => return Err(TreeError::Open(source)),
    }
    Ok(size)
}

fn add(held: &OwnedFd, depth: usize, size: &mut Size) {
    let Ok(directory) = open::readable(held) else { return };
    let Ok(entries) = Dir::read_from(&directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        size.entries += 1;
        // stat(2): in units of 512 bytes, whatever the block size.
        size.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
        if depth > 0 && FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let path = Path::new(OsStr::from_bytes(name.to_bytes()));
            if let Ok(inner) = open::child(&directory, path, path) {
                add(&inner.fd, depth - 1, size);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_is_measured_without_what_its_links_name() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs_err::write(outside.path().join("large"), vec![1; 1 << 20]).unwrap();
        let name = Name::new("t_0badcafe").unwrap();
        fs_err::create_dir_all(base.path().join("t_0badcafe/a/b")).unwrap();
        fs_err::write(base.path().join("t_0badcafe/a/b/file"), vec![1; 10_000]).unwrap();
        symlink(outside.path(), base.path().join("t_0badcafe/a/link")).unwrap();

        let size = measure(base.path(), &name).unwrap();

        assert_eq!(size.entries, 4);
        assert!((10_000..1 << 20).contains(&size.bytes), "{size:?}");
        assert_eq!(measure(base.path(), &Name::new("t_00000000").unwrap()).unwrap(), Size::default());
    }
}
