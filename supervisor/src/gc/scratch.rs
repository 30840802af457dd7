//! The scratch workspace of a task that is over.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel::{BoardName, TaskId};
use policies::Identity;
use workspace::{Failure, Job, Lease, LeaseHolder, Name, Outcome, Place, Sharing, Size};

use super::{Deed, Fate};
use crate::daemon::work_as;
use crate::paths::Root;

/// Whose a scratch workspace may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This user's.
    Uid(u32),
    /// One of the users that workers of the board have had, and that no task has now.
    Former(RangeInclusive<u32>, BTreeSet<u32>),
    /// Nobody's: no worker ever had it.
    Nobody,
}

impl Owner {
    /// The owner that the workspace of a task should have. As root, each task has a user of its own.
    pub(crate) fn of(worker_uid: Option<u32>) -> Self {
        let own = nix::unistd::geteuid();
        if own.is_root() { worker_uid.map_or(Owner::Nobody, Owner::Uid) } else { Owner::Uid(own.as_raw()) }
    }

    fn refuse(&self, found: u32) -> Option<String> {
        match self {
            Owner::Uid(uid) if *uid == found => None,
            Owner::Uid(uid) => Some(format!("it belongs to uid {found}, and its task's worker is uid {uid}")),
            Owner::Former(range, taken) if range.contains(&found) && !taken.contains(&found) => None,
            Owner::Former(..) => Some(format!("it belongs to uid {found}, who is no former worker's")),
            Owner::Nobody => Some(format!("it belongs to uid {found}, and its task never had a worker")),
        }
    }
}

/// One scratch workspace.
#[derive(Debug)]
pub(crate) struct Scratch<'a> {
    /// The root.
    pub(crate) root: &'a Root,
    /// The board.
    pub(crate) board: &'a BoardName,
    /// The task.
    pub(crate) task: &'a TaskId,
    /// Whose it should be.
    pub(crate) owner: Owner,
    /// Directories that other tasks work in, or will.
    pub(crate) needed: &'a BTreeSet<PathBuf>,
}

impl Scratch<'_> {
    /// Looks at the workspace, or removes it. Blocking.
    pub(crate) fn collect(&self, deed: Deed) -> Fate {
        let base = self.root.workspaces(self.board);
        let path = base.join(self.task.as_str());
        let meta = match std::fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == ErrorKind::NotFound => return Fate::Absent,
            Err(e) => return Fate::Stuck(format!("{}: {e}", path.display())),
        };
        if meta.file_type().is_symlink() {
            return Fate::Foreign("it is a symbolic link".to_owned());
        }
        if !meta.is_dir() {
            return Fate::Foreign("it is no directory".to_owned());
        }
        let own = nix::unistd::geteuid().as_raw();
        // A preparation that was cut short leaves an empty directory that was not given away yet.
        let unfinished = meta.uid() == own && is_empty(&path);
        if !unfinished && let Some(why) = self.owner.refuse(meta.uid()) {
            return Fate::Foreign(why);
        }
        if self.needed.iter().any(|needed| needed.starts_with(&path)) {
            return Fate::Stuck("another task works in it".to_owned());
        }
        let lease = match self.lease(&path, &meta) {
            Ok(lease) => lease,
            Err(why) => return Fate::Stuck(why),
        };
        let fate = self.take(&base, &path, &meta, deed).unwrap_or_else(|failure| Fate::Stuck(told(failure)));
        drop(lease);
        fate
    }

    /// Nobody may begin to work there meanwhile.
    fn lease(&self, path: &Path, meta: &Metadata) -> Result<Lease, String> {
        let place = Place { device: meta.dev(), inode: meta.ino() };
        let holder = LeaseHolder {
            board: self.board.to_string(),
            run: 0,
            task: Some(format!("{}, whose workspace is being removed", self.task)),
        };
        Lease::acquire(&self.root.leases(), path, place, Sharing::Exclusive, &holder)
            .map_err(|e| crate::lanes::with_causes(&e))
    }

    fn take(&self, base: &Path, path: &Path, meta: &Metadata, deed: Deed) -> Result<Fate, Failure> {
        let broken = |message: String| Failure { code: "gc_failed".to_owned(), message, hint: None };
        let name = Name::new(self.task.as_str()).map_err(|e| broken(e.to_string()))?;
        let base = base.to_owned();
        let own = nix::unistd::geteuid().as_raw();
        let identity = (meta.uid() != own).then(|| Identity { uid: meta.uid(), gid: meta.gid() });
        let here = || vec![path.to_owned()];
        let measure = Job::Measure { base: base.clone(), name: name.clone() };
        let size = match work_as(identity, Vec::new(), here(), measure)? {
            Outcome::Measured(size) => Size { entries: size.entries + 1, ..size },
            other => return Err(broken(format!("the helper answered another question: {other:?}"))),
        };
        if deed == Deed::Remove {
            work_as(identity, Vec::new(), here(), Job::RemoveScratch { base, name })?;
            match std::fs::remove_dir(path) {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    return Err(broken(format!("{}: {e}", path.display())));
                }
                _ => {}
            }
        }
        Ok(Fate::Gone(size))
    }
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// What a helper could not do, with what its reader can do about it.
pub(super) fn told(failure: Failure) -> String {
    match failure.hint {
        Some(hint) => format!("{} ({hint})", failure.message),
        None => failure.message,
    }
}
