//! Locates paths: the file system, and the position on it, through any mount.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// The kernel's table of the mounts that this process sees (`proc_pid_mountinfo(5)`).
const TABLE: &str = "/proc/self/mountinfo";

/// The mounts that this process sees.
#[derive(Debug, Clone)]
pub(crate) struct MountTable {
    mounts: Vec<Mount>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    id: u64,
    device: String,
    /// Directory of the file system that is mounted.
    root: PathBuf,
    at: PathBuf,
}

/// A place on a file system: two paths with the same spot are the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) device: String,
    pub(crate) path: PathBuf,
}

impl MountTable {
    pub(crate) fn read() -> io::Result<Self> {
        let text = std::fs::read(TABLE)?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &[u8]) -> Self {
        let mounts = text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect();
        Self { mounts }
    }

    /// Locates a path without symbolic links. The existing part of a missing path decides.
    pub(crate) fn spot(&self, path: &Path) -> Option<Spot> {
        Self::spot_in(self.mount_of(path)?, path)
    }

    /// Locates a path by the names of the table alone, and never opens it.
    pub(crate) fn spot_by_name(&self, path: &Path) -> Option<Spot> {
        Self::spot_in(self.mount_by_name(path)?, path)
    }

    fn spot_in(mount: &Mount, path: &Path) -> Option<Spot> {
        let inside = path.strip_prefix(&mount.at).ok()?;
        Some(Spot { device: mount.device.clone(), path: mount.root.join(inside) })
    }

    /// Returns the mounts beneath a path, each with its mount point and the mounted place.
    pub(crate) fn beneath(&self, path: &Path) -> impl Iterator<Item = (&Path, Spot)> {
        let inner = self.mounts.iter().filter(move |mount| mount.at != path && mount.at.starts_with(path));
        inner.map(|mount| {
            (mount.at.as_path(), Spot { device: mount.device.clone(), path: mount.root.clone() })
        })
    }

    fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let by_kernel = path.ancestors().find_map(mount_id);
        let known = by_kernel.and_then(|id| self.mounts.iter().find(|mount| mount.id == id));
        // A path in a mount that is no longer in the table, or a kernel before 5.8.
        known.filter(|mount| path.starts_with(&mount.at)).or_else(|| self.mount_by_name(path))
    }

    /// Returns the deepest mount above a path; among mounts on one point, the last.
    fn mount_by_name(&self, path: &Path) -> Option<&Mount> {
        let over = self.mounts.iter().filter(|mount| path.starts_with(&mount.at));
        over.max_by_key(|mount| mount.at.as_os_str().len())
    }
}

impl Mount {
    /// Reads one line: id, parent, device, root and mount point. The other columns are not needed.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse().ok();
        let id = number(words.next()?)?;
        let device = String::from_utf8(words.nth(1)?.to_vec()).ok()?;
        Some(Self { id, device, root: unescaped(words.next()?), at: unescaped(words.next()?) })
    }
}

/// Returns a path of the table, in which blanks and backslashes are written as three octal digits.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'\\').then(|| after.get(..3)).flatten();
        let code = code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        if let (Some(code), Some(after)) = (code, after.get(3..)) {
            bytes.push(code);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    OsString::from_vec(bytes).into()
}

/// Returns the id of the mount that a path lies on.
fn mount_id(path: &Path) -> Option<u64> {
    let status = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
    (status.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(status.stx_mnt_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
900001 1 8:1 / / rw - ext4 /dev/sda1 rw
900002 900001 8:1 /srv/data /opt/my\\040data rw shared:2 - ext4 /dev/sda1 rw
900003 900001 0:44 / /mnt/disk rw - tmpfs tmpfs rw
";

    fn spot(path: &str) -> (String, PathBuf) {
        let Spot { device, path } = MountTable::parse(TEXT).spot(Path::new(path)).unwrap();
        (device, path)
    }

    #[test]
    fn a_path_is_found_on_its_file_system() {
        assert_eq!(spot("/no/such/place"), ("8:1".to_owned(), "/no/such/place".into()));
        assert_eq!(spot("/opt/my data/x"), ("8:1".to_owned(), "/srv/data/x".into()));
        assert_eq!(spot("/mnt/disk"), ("0:44".to_owned(), "/".into()));
    }

    #[test]
    fn the_mounts_beneath_a_path_are_listed() {
        let table = MountTable::parse(TEXT);
        let beneath: Vec<&Path> = table.beneath(Path::new("/opt")).map(|(at, _)| at).collect();
        assert_eq!(beneath, [Path::new("/opt/my data")]);
    }

    #[test]
    fn the_kernels_table_is_understood() {
        let table = MountTable::read().unwrap();
        assert!(table.spot(Path::new("/")).is_some());
        let proc = table.spot(Path::new("/proc/self")).unwrap();
        assert_ne!(Some(proc.device), table.spot(Path::new("/")).map(|root| root.device));
    }

    #[test]
    fn the_kernel_names_the_mount_that_a_path_lies_on() {
        let host = MountTable::parse(&std::fs::read("/proc/self/mountinfo").unwrap());
        let proc = host.mounts.iter().rfind(|mount| mount.at == Path::new("/proc")).unwrap();
        assert_eq!(mount_id(Path::new("/proc/version")), Some(proc.id));
        assert_eq!(mount_id(Path::new("/no/such/path")), None);
    }
}
