//! Detects changes of a database that another program writes, by the times of its files, so that an idle database is
//! not read again and again.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::model::projection::{FileStamp, Stamp};

/// Time after a write during which a further write may leave the file's times unchanged. The times advance with the
/// ticks of the kernel's clock, and on some file systems only in steps of two seconds (FAT).
const TICK: Duration = Duration::from_secs(2);

impl Stamp {
    /// Reads the stamp of the database file and of its write-ahead log. An absent file has no stamp.
    pub(crate) fn read(path: &Path) -> Self {
        let log: OsString = [path.as_os_str(), "-wal".as_ref()].into_iter().collect();
        Self([path, log.as_ref()].map(|path| {
            let file = std::fs::symlink_metadata(path).ok()?;
            Some(FileStamp {
                device: file.dev(),
                inode: file.ino(),
                length: file.len(),
                written: (file.mtime(), file.mtime_nsec()),
                changed: (file.ctime(), file.ctime_nsec()),
            })
        }))
    }

    /// Returns true if every write after `now` changes the stamp.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let settled = now.checked_sub(TICK).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let settled = settled.map_or(0, |at| i64::try_from(at.as_secs()).unwrap_or(i64::MAX));
        self.0.iter().flatten().all(|file| file.written.0 < settled && file.changed.0 < settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_shows_in_the_file_or_in_its_log_and_is_settled_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kanban.db");
        assert_eq!(Stamp::read(&path), Stamp::read(&path), "there is none");
        std::fs::write(&path, "a").unwrap();
        let first = Stamp::read(&path);
        assert_eq!(first, Stamp::read(&path));
        let now = SystemTime::now();
        assert!(!first.is_settled(now) && first.is_settled(now + Duration::from_secs(9)));
        std::fs::write(dir.path().join("kanban.db-wal"), "b").unwrap();
        assert_ne!(first, Stamp::read(&path));
    }
}
