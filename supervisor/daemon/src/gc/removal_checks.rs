//! Checks and leases before a removal. Only directories that are not links are removed, as their owner, and under a lease.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use policies::Identity;
use workspace::{FileIdentity, Job, Lease, LeaseError, LeaseHolder, Name, Outcome, Size};

use super::CollectResult;
use host::job::{self, JobFailure};
use host::worker_user::job_user;

/// Returns the metadata of a directory. A file of another type was not made by this program.
pub(super) fn directory(path: &Path) -> Result<Metadata, CollectResult> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(meta),
        Ok(meta) if meta.is_symlink() => Err(CollectResult::Foreign("it is a symbolic link".to_owned())),
        Ok(_) => Err(CollectResult::Foreign("it is not a directory".to_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(CollectResult::Absent),
        Err(e) => Err(CollectResult::Stuck(e.to_string())),
    }
}

pub(super) fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Returns the user for a job process on files of `uid`; none if they belong to this process's user.
pub(super) fn identity(uid: u32) -> Option<Identity> {
    (uid != own_uid()).then(|| job_user(uid))
}

/// Takes the lease on a directory, so that no run starts in it during the removal. Waits for another removal of the
/// directory, after which it is absent.
pub(super) fn lease(
    leases: &Path,
    path: &Path,
    meta: &Metadata,
    board: &str,
) -> Result<Lease, CollectResult> {
    let place = FileIdentity { device: meta.dev(), inode: meta.ino() };
    let holder = LeaseHolder::Removal { removed_by_board: board.to_owned() };
    Lease::acquire(leases, path, place, &holder).map_err(|e| match e {
        LeaseError::Gone { .. } => CollectResult::Absent,
        e => CollectResult::Stuck(base::failure::with_causes(&e)),
    })
}

/// Measures `base/name` in a job process, including the directory itself.
pub(super) fn measure(identity: Option<Identity>, base: &Path, name: &Name) -> Result<Size, CollectResult> {
    let job = Job::Measure { base: base.to_owned(), name: name.clone() };
    match job::work(identity, Vec::new(), vec![base.join(name.as_str())], job).map_err(stuck)? {
        Outcome::Measured(size) => Ok(Size { entries: size.entries + 1, ..size }),
        other => Err(CollectResult::Stuck(format!("the job process answered another question: {other:?}"))),
    }
}

/// Converts the failure of a job, with its remedy in the text.
pub(super) fn stuck(failure: JobFailure) -> CollectResult {
    CollectResult::Stuck(match failure.hint {
        Some(hint) => format!("{} ({hint})", failure.message),
        None => failure.message,
    })
}
