//! The host's ledger of worker uids: one file beside its lock, for all roots.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel::BoardId;
use serde::{Deserialize, Serialize};
use shim::lock_file::LockFile;

use super::Range;
use crate::failure::Failure;
use crate::paths::{Root, make_dir};

const FILE: &str = "ranges.json";
const LOCK: &str = "lock";
/// The version of the file.
const VERSION: u32 = 1;

/// Whose a range is: a board of a root. A copy of a root is another root, and one that was moved is the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    root: PathBuf,
    device: u64,
    inode: u64,
    board: String,
}

impl Owner {
    /// A board of a root that is there.
    pub(super) fn of(root: &Root, board: BoardId) -> Result<Self, Failure> {
        let dir = root.dir();
        let meta = std::fs::metadata(dir).map_err(|e| Failure::file("look at the root", dir, &e))?;
        Ok(Owner { root: dir.to_owned(), device: meta.dev(), inode: meta.ino(), board: board.to_string() })
    }

    /// Devices get other numbers when a host starts again, and paths other names when somebody moves them; both at once is
    /// another root.
    fn is(&self, other: &Owner) -> bool {
        let same_place = (self.device, self.inode) == (other.device, other.inode);
        self.board == other.board && (same_place || self.root == other.root)
    }

    /// The root, where it was when the range was given out.
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

/// One range that was given out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reservation {
    #[serde(flatten)]
    pub(super) owner: Owner,
    #[serde(flatten)]
    pub(super) range: Range,
}

/// All ranges that were given out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Reservations {
    version: u32,
    ranges: Vec<Reservation>,
}

impl Reservations {
    /// The range of a board.
    pub(super) fn range_of(&self, owner: &Owner) -> Option<Range> {
        self.ranges.iter().find(|entry| entry.owner.is(owner)).map(|entry| entry.range)
    }

    /// Each range.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Reservation> {
        self.ranges.iter()
    }

    /// Adds a range.
    pub(super) fn push(&mut self, entry: Reservation) {
        self.ranges.push(entry);
    }

    /// Forgets the ranges of roots that are gone, where no process has one of their uids. The files of a root go with it.
    pub(super) fn forget_vanished(&mut self, live: &LiveUids) {
        self.ranges.retain(|entry| !entry.owner.has_vanished() || live.highest_in(entry.range).is_some());
    }
}

/// The users of all processes of the host. A ledger that was lost names the users of live workers no more.
#[derive(Debug, Default)]
pub(super) struct LiveUids(BTreeSet<u32>);

impl LiveUids {
    /// Those of now.
    ///
    /// # Errors
    /// Where the processes cannot be listed: then nobody knows which uids are free.
    pub(super) fn look() -> Result<Self, Failure> {
        let failed =
            |e: procfs::ProcError| Failure::failed(format!("failed to list the users of processes: {e}"));
        let mut uids = BTreeSet::new();
        for process in procfs::process::all_processes().map_err(failed)? {
            // One that has ended meanwhile has no user any more. The files of a process may be root's, its status is not.
            if let Ok(status) = process.and_then(|process| process.status()) {
                uids.extend([status.ruid, status.euid, status.suid]);
            }
        }
        Ok(LiveUids(uids))
    }

    /// The highest of them in a range.
    pub(super) fn highest_in(&self, range: Range) -> Option<u32> {
        self.0.range(range.first..=range.last).next_back().copied()
    }
}

/// The file of the ledger as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

/// The ledger in its directory.
#[derive(Debug)]
pub(super) struct Ledger {
    dir: PathBuf,
}

impl Ledger {
    /// The ledger in a directory that need not be there yet.
    pub(super) fn at(dir: &Path) -> Self {
        Ledger { dir: dir.to_owned() }
    }

    /// Which file it is now, as it is now; none where none is there.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let meta = std::fs::metadata(self.dir.join(FILE)).ok()?;
        let changed = (meta.ctime(), meta.ctime_nsec());
        Some(Stamp { device: meta.dev(), inode: meta.ino(), changed })
    }

    /// Reads it. A ledger that is not there is empty.
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

    /// Changes it while no other daemon does; durable when it returns. A change that fails changes nothing.
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
        // Held for the time of one small write.
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
        let mut beside = tempfile::NamedTempFile::new_in(&self.dir)?;
        let mut text = serde_json::to_vec(&entries)?;
        text.push(b'\n');
        beside.write_all(&text)?;
        beside.as_file().sync_all()?;
        beside.persist(self.dir.join(FILE)).map_err(|e| e.error)?;
        std::fs::File::open(&self.dir)?.sync_all()
    }
}
