//! Ledger of the ranges of worker uids that the roots of this host have reserved: a file, with its lock beside it.
//!
//! See decision 0029.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel::BoardId;
use serde::{Deserialize, Serialize};
use shim::lock_file::LockFile;

use super::Range;
use base::failure::Failure;
use base::paths::{Root, make_dir};

const FILE: &str = "ranges.json";
const LOCK: &str = "lock";
const VERSION: u32 = 1;

/// Owner of a range: a board of a root. A copy of a root is another root. A moved root stays the same root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    root: PathBuf,
    device: u64,
    inode: u64,
    board: String,
}

impl Owner {
    /// Makes the owner for a board of an existing root.
    pub(super) fn for_board(root: &Root, board: BoardId) -> Result<Self, Failure> {
        let dir = root.dir();
        let meta = std::fs::metadata(dir).map_err(|e| Failure::file("look at the root", dir, &e))?;
        Ok(Owner { root: dir.to_owned(), device: meta.dev(), inode: meta.ino(), board: board.to_string() })
    }

    /// Returns true for the same board of the same root. The number of a device may change at a restart of the host, and the
    /// path changes when a root is moved. A root counts as another one only if both differ.
    fn is(&self, other: &Owner) -> bool {
        let same_place = (self.device, self.inode) == (other.device, other.inode);
        self.board == other.board && (same_place || self.root == other.root)
    }

    /// Returns the path of the root at the time of the reservation.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn has_vanished(&self) -> bool {
        match std::fs::metadata(&self.root) {
            Ok(meta) => meta.ino() != self.inode,
            Err(e) => e.kind() == std::io::ErrorKind::NotFound,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reservation {
    #[serde(flatten)]
    pub(super) owner: Owner,
    #[serde(flatten)]
    pub(super) range: Range,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Reservations {
    version: u32,
    ranges: Vec<Reservation>,
}

impl Reservations {
    /// Returns the range of a board.
    pub(super) fn range_of(&self, owner: &Owner) -> Option<Range> {
        self.ranges.iter().find(|entry| entry.owner.is(owner)).map(|entry| entry.range)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Reservation> {
        self.ranges.iter()
    }

    pub(super) fn push(&mut self, entry: Reservation) {
        self.ranges.push(entry);
    }

    /// Drops the ranges of roots that no longer exist, unless a process has a uid of the range. The files with these uids were
    /// removed with the root.
    pub(super) fn forget_vanished(&mut self, live: &LiveUids) {
        self.ranges.retain(|entry| !entry.owner.has_vanished() || live.highest_in(entry.range).is_some());
    }
}

/// Uids of all processes on the host. With them, the uids of live workers are not given again even if the ledger was lost.
#[derive(Debug, Default)]
pub(super) struct LiveUids(BTreeSet<u32>);

impl LiveUids {
    /// Reads the uids of all processes.
    ///
    /// # Errors
    /// The processes cannot be listed, so free uids cannot be determined.
    pub(super) fn read() -> Result<Self, Failure> {
        let failed =
            |e: procfs::ProcError| Failure::failed(format!("failed to list the users of processes: {e}"));
        let mut uids = BTreeSet::new();
        for process in procfs::process::all_processes().map_err(failed)? {
            // A process that has ended meanwhile is skipped. The status has the true uids, while the files of a process in
            // /proc may belong to root.
            if let Ok(status) = process.and_then(|process| process.status()) {
                uids.extend([status.ruid, status.euid, status.suid]);
            }
        }
        Ok(LiveUids(uids))
    }

    /// Returns the highest uid in a range.
    pub(super) fn highest_in(&self, range: Range) -> Option<u32> {
        self.0.range(range.first..=range.last).next_back().copied()
    }
}

/// Version of the ledger's file at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

#[derive(Debug)]
pub(super) struct Ledger {
    dir: PathBuf,
}

impl Ledger {
    /// Makes the ledger for a directory, which may not exist yet.
    pub(super) fn at(dir: &Path) -> Self {
        Ledger { dir: dir.to_owned() }
    }

    /// Returns the present version of the file; none if it does not exist.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let meta = std::fs::metadata(self.dir.join(FILE)).ok()?;
        let changed = (meta.ctime(), meta.ctime_nsec());
        Some(Stamp { device: meta.dev(), inode: meta.ino(), changed })
    }

    /// Reads the ledger. A missing ledger is empty.
    pub(super) fn read(&self) -> Result<Reservations, Failure> {
        let path = self.dir.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
                Failure::failed(format!("{} cannot be understood: {e}", path.display()))
                    .hint(format!(
                        "restore it from a backup; or start a daemon of each root of this host that has had workers, and then \
                         remove it: each enters its uids again (rm {})",
                        path.display()
                    ))
            }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Reservations::default()),
            Err(e) => Err(Failure::file("read", &path, &e)),
        }
    }

    /// Changes the ledger under its lock, and makes the change durable. If `change` fails, nothing is written.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Reservations) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let elsewhere = |failure: Failure| {
            failure.hint(
                "every root of this host needs one directory that it can write: name it as worker.uid_ledger in \
                 supervisor.toml, the same for all",
            )
        };
        make_dir(&self.dir, 0o700).map_err(elsewhere)?;
        let path = self.dir.join(LOCK);
        // The lock is kept for one small write.
        let _lock = LockFile::lock(&path).map_err(|e| elsewhere(Failure::file("lock", &path, &e)))?;
        let mut entries = self.read()?;
        let before = entries.ranges.clone();
        let outcome = change(&mut entries)?;
        if entries.ranges != before {
            self.write(&entries).map_err(|e| Failure::file("write", &self.dir.join(FILE), &e))?;
        }
        Ok(outcome)
    }

    fn write(&self, entries: &Reservations) -> std::io::Result<()> {
        let entries = Reservations { version: VERSION, ..entries.clone() };
        let mut draft = tempfile::NamedTempFile::new_in(&self.dir)?;
        let mut text = serde_json::to_vec(&entries)?;
        text.push(b'\n');
        draft.write_all(&text)?;
        draft.as_file().sync_all()?;
        draft.persist(self.dir.join(FILE)).map_err(|e| e.error)?;
        std::fs::File::open(&self.dir)?.sync_all()
    }
}
