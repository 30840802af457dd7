//! Measures the disk use of a directory tree. Symbolic links are not followed, and other file systems are not entered. A
//! file with several hard links counts once for each of them.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};

/// Limit on the depth of a tree; each level costs an open descriptor and a stack frame.
const DEPTH: usize = 64;

/// Disk use of one or more trees, as far as the limits allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Bytes allocated on the disk.
    pub bytes: u64,
    /// Number of examined entries.
    pub entries: usize,
    /// True if entries were skipped because of a limit or an error.
    pub is_partial: bool,
}

impl DiskUse {
    /// Adds the contents of a directory, until `entries` is `most`. A missing directory adds nothing.
    pub fn add(&mut self, path: &Path, most: usize) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(CWD, path, flags, Mode::empty()) {
            Ok(dir) => {
                let device = rustix::fs::fstat(&dir).map(|stat| stat.st_dev);
                match device {
                    Ok(device) => self.walk(&dir, device, DEPTH, most),
                    Err(_) => self.is_partial = true,
                }
            }
            Err(rustix::io::Errno::NOENT) => {}
            Err(_) => self.is_partial = true,
        }
    }

    fn walk(&mut self, dir: &OwnedFd, device: u64, depth: usize, most: usize) {
        let Ok(entries) = Dir::read_from(dir) else {
            self.is_partial = true;
            return;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.is_partial = true;
                return;
            };
            let name: CString = entry.file_name().to_owned();
            if [c".", c".."].contains(&name.as_c_str()) {
                continue;
            }
            if self.entries >= most {
                self.is_partial = true;
                return;
            }
            self.entries += 1;
            // An entry that vanished meanwhile uses no space.
            let Ok(stat) = statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            // The unit of st_blocks is 512 bytes on every file system (stat(3type)).
            self.bytes += u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory || stat.st_dev != device {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(dir, &name, flags, Mode::empty()) {
                Ok(below) if depth > 0 => self.walk(&below, device, depth - 1, most),
                Ok(_) | Err(_) => self.is_partial = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_added_up_without_what_links_lead_to_and_within_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("place");
        std::fs::create_dir_all(place.join("a/b")).unwrap();
        std::fs::write(dir.path().join("big"), vec![7; 1 << 20]).unwrap();
        std::fs::write(place.join("a/b/file"), vec![7; 64 << 10]).unwrap();
        std::os::unix::fs::symlink(dir.path(), place.join("up")).unwrap();
        let look = |most| {
            let mut total = DiskUse::default();
            total.add(&place, most);
            total
        };
        let all = look(100);
        assert_eq!((all.entries, all.is_partial), (4, false));
        assert!((64 << 10..1 << 20).contains(&all.bytes), "{all:?}");
        assert!(look(2).is_partial);
        let mut none = DiskUse::default();
        none.add(&dir.path().join("nothing"), 9);
        assert_eq!(none, DiskUse::default());
    }
}
