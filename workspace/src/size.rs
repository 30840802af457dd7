//! Measures directory trees on disk without following a link or leaving their file system. A file with several hard
//! links counts once for each of them.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::open::{self, OpenError};
use crate::tree::TreeError;

/// Limit on the depth: each level holds a descriptor.
const DEPTH: usize = 128;

/// Size of a directory tree on its disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Bytes on disk, as far as could be seen.
    pub bytes: u64,
    /// Files and directories beneath the top.
    pub entries: u64,
}

/// Size of one or more trees, as far as the limits allow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskUse {
    pub size: Size,
    /// True if entries were skipped because of a limit or an error.
    pub is_partial: bool,
}

/// Measures the directory `base/name`. Directories that cannot be read, or lie too deep, are not counted.
pub fn measure(base: &Path, name: &Name) -> Result<Size, TreeError> {
    let parent = open::trusted(base).map_err(TreeError::OpenBase)?;
    let top = match open::child(&parent.fd, Path::new(name.as_str()), &base.join(name.as_str())) {
        Ok(top) => top,
        Err(OpenError::Missing { .. }) => return Ok(Size::default()),
        Err(source) => return Err(TreeError::Open(source)),
    };
    let mut disk_use = DiskUse::default();
    if let Ok(directory) = open::readable(&top.fd) {
        disk_use.walk(&directory, DEPTH, u64::MAX);
    }
    Ok(disk_use.size)
}

impl DiskUse {
    /// Adds the contents of a directory, until there are `most` entries. A missing directory adds nothing.
    pub fn add(&mut self, path: &Path, most: u64) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(CWD, path, flags, Mode::empty()) {
            Ok(directory) => self.walk(&directory, DEPTH, most),
            Err(Errno::NOENT) => {}
            Err(_) => self.is_partial = true,
        }
    }

    fn walk(&mut self, directory: &OwnedFd, depth: usize, most: u64) {
        let Ok(entries) = Dir::read_from(directory) else {
            self.is_partial = true;
            return;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.is_partial = true;
                return;
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.size.entries >= most {
                self.is_partial = true;
                return;
            }
            // An entry that vanished meanwhile uses no space.
            let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            self.size.entries += 1;
            // The unit of st_blocks is 512 bytes on every file system (stat(3type)).
            self.size.bytes += u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                continue;
            }
            match open::readable_child(directory, Path::new(OsStr::from_bytes(name.to_bytes()))) {
                Ok(below) if depth > 0 => self.walk(&below, depth - 1, most),
                // Another file system.
                Err(e) if e.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {}
                Ok(_) | Err(_) => self.is_partial = true,
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

    #[test]
    fn trees_are_added_up_within_a_limit_on_their_entries() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("place");
        fs_err::create_dir_all(place.join("a/b")).unwrap();
        fs_err::write(dir.path().join("big"), vec![7; 1 << 20]).unwrap();
        fs_err::write(place.join("a/b/file"), vec![7; 64 << 10]).unwrap();
        symlink(dir.path(), place.join("up")).unwrap();
        let look = |most| {
            let mut total = DiskUse::default();
            total.add(&place, most);
            total
        };
        let all = look(100);
        assert_eq!((all.size.entries, all.is_partial), (4, false));
        assert!((64 << 10..1 << 20).contains(&all.size.bytes), "{all:?}");
        assert!(look(2).is_partial);
        let mut none = DiskUse::default();
        none.add(&dir.path().join("nothing"), 9);
        assert_eq!(none, DiskUse::default());
    }
}
