//! The lease on a directory: one run at a time, across boards, held as a file lock by whichever process runs the work.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::lock;
use crate::prepared::Place;

/// Who holds a lease; written into the lease file, so that a refusal can name them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseHolder {
    /// The board of the run.
    pub board: String,
    /// The run's number on that board.
    pub run: i64,
    /// The task, or whatever else names the work to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

impl std::fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "run {} of board {}", self.run, self.board)?;
        match &self.task {
            Some(task) => write!(f, " (task {task})"),
            None => Ok(()),
        }
    }
}

/// Whether several runs may have the directory at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// One run at a time.
    #[default]
    Exclusive,
    /// As many as ask for it shared; never together with an exclusive one.
    Shared,
}

/// Why a lease was not had.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another run has the directory.
    #[error("{workspace} is in use{}", .holder.as_ref().map(|holder| format!(" by {holder}")).unwrap_or_default())]
    Held {
        /// The directory asked for.
        workspace: PathBuf,
        /// Who has it, if the lease file says so already.
        holder: Option<LeaseHolder>,
    },
    /// Another run has a directory in which this one lies.
    #[error("{workspace} lies in {above}, which is in use{}", .holder.as_ref().map(|holder| format!(" by {holder}")).unwrap_or_default())]
    HeldAbove {
        /// The directory asked for.
        workspace: PathBuf,
        /// The directory that is in use.
        above: PathBuf,
        /// Who has it, if the lease file says so already.
        holder: Option<LeaseHolder>,
    },
    /// Others share this directory, or have one inside it.
    #[error("{workspace}, or a directory in it, is in use by another run")]
    HeldInside {
        /// The directory asked for.
        workspace: PathBuf,
    },
    /// The lease file could not be opened or locked.
    #[error("lock {path}")]
    Lock {
        /// The lease file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The holder could not be written into the lease file.
    #[error("write {path}")]
    Write {
        /// The lease file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The directory of lease files could not be listed.
    #[error("list {path}")]
    List {
        /// The directory of lease files.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A lease file that nobody holds could not be removed.
    #[error("remove {path}")]
    Remove {
        /// The lease file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl LeaseError {
    /// Returns what the reader can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Held { .. } | Self::HeldAbove { .. } | Self::HeldInside { .. } => {
                Some("wait until that run has ended, or give this task a workspace of its own".to_owned())
            }
            Self::Lock { .. } | Self::Write { .. } | Self::List { .. } | Self::Remove { .. } => None,
        }
    }

    /// Returns the stable code of this refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Held { .. } | Self::HeldAbove { .. } | Self::HeldInside { .. } => "workspace_held",
            Self::Lock { .. } | Self::Write { .. } | Self::List { .. } | Self::Remove { .. } => {
                "workspace_lease_failed"
            }
        }
    }
}

/// Returns the lease file of a directory.
pub fn lease_path(leases_dir: &Path, place: Place) -> PathBuf {
    leases_dir.join(format!("{:x}-{:x}.lease", place.device, place.inode))
}

/// A lease that this process holds; dropping it, or the end of the process, releases it.
#[derive(Debug)]
pub struct Lease {
    locked: File,
    path: PathBuf,
    /// Shared locks on the leases of the directories above: a lease on one of them would be one on this place too.
    above: Vec<File>,
}

impl Lease {
    /// Takes the lease on a directory without waiting.
    ///
    /// `leases_dir` exists and belongs to the daemon; the lease file in it is made as needed. Each process takes its own:
    /// a shim calls this for itself, and its lease then outlives the daemon.
    pub fn acquire(
        leases_dir: &Path,
        workspace: &Path,
        place: Place,
        sharing: Sharing,
        holder: &LeaseHolder,
    ) -> Result<Self, LeaseError> {
        let path = lease_path(leases_dir, place);
        let operation = match sharing {
            Sharing::Exclusive => FlockOperation::NonBlockingLockExclusive,
            Sharing::Shared => FlockOperation::NonBlockingLockShared,
        };
        let above = share_above(leases_dir, workspace)?;
        let mut locked = lock::take(&path, operation).map_err(|source| {
            if source.kind() != io::ErrorKind::WouldBlock {
                return LeaseError::Lock { path: path.clone(), source };
            }
            // Those who work in it share its lease, and have signed their own.
            match lock::take(&path, FlockOperation::NonBlockingLockShared) {
                Ok(_) => LeaseError::HeldInside { workspace: workspace.to_owned() },
                Err(_) => LeaseError::Held { workspace: workspace.to_owned(), holder: read_holder(&path) },
            }
        })?;
        write_holder(&mut locked, holder)
            .map_err(|source| LeaseError::Write { path: path.clone(), source })?;
        Ok(Self { locked, path, above })
    }

    /// Returns the lease file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Closing is not enough: a child forked by another thread has the descriptor until it execs. Nothing can be done
        // about a failure, and closing follows.
        let _ = flock(&self.locked, FlockOperation::Unlock);
        for file in &self.above {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// Takes a share of the lease on each directory above a place, so that none is leased as a whole meanwhile.
fn share_above(leases_dir: &Path, workspace: &Path) -> Result<Vec<File>, LeaseError> {
    let mut above = Vec::new();
    for directory in workspace.ancestors().skip(1) {
        let stat = rustix::fs::stat(directory)
            .map_err(|errno| LeaseError::Lock { path: directory.to_owned(), source: errno.into() })?;
        let path = lease_path(leases_dir, Place::of(&stat));
        above.push(lock::take(&path, FlockOperation::NonBlockingLockShared).map_err(|source| {
            if source.kind() == io::ErrorKind::WouldBlock {
                LeaseError::HeldAbove {
                    workspace: workspace.to_owned(),
                    above: directory.to_owned(),
                    holder: read_holder(&path),
                }
            } else {
                LeaseError::Lock { path: path.clone(), source }
            }
        })?);
    }
    Ok(above)
}

/// Returns who holds the lease on a directory, or nothing where it is free or the holder has not signed yet.
fn read_holder(path: &Path) -> Option<LeaseHolder> {
    // Half a record, written by a holder that is just signing, does not parse: the refusal then names nobody.
    serde_json::from_slice(&fs_err::read(path).ok()?).ok()
}

fn write_holder(file: &mut File, holder: &LeaseHolder) -> io::Result<()> {
    let text = serde_json::to_vec(holder)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&text)
}

/// Removes the lease files that nobody holds and returns how many; they are tiny, and `gc` is soon enough.
pub fn sweep_leases(leases_dir: &Path) -> Result<usize, LeaseError> {
    let list = |source| LeaseError::List { path: leases_dir.to_owned(), source };
    let mut removed = 0;
    for entry in fs_err::read_dir(leases_dir).map_err(list)? {
        let path = entry.map_err(list)?.path();
        if path.extension().is_none_or(|extension| extension != "lease") {
            continue;
        }
        match lock::take(&path, FlockOperation::NonBlockingLockExclusive) {
            Ok(locked) => {
                fs_err::remove_file(&path)
                    .map_err(|source| LeaseError::Remove { path: path.clone(), source })?;
                drop(locked);
                removed += 1;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(source) => return Err(LeaseError::Lock { path, source }),
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    const PLACE: Place = Place { device: 0x2a, inode: 0xbeef };

    fn holder(run: i64) -> LeaseHolder {
        LeaseHolder { board: "default".to_owned(), run, task: Some("t_0badcafe".to_owned()) }
    }

    fn acquire(dir: &Path, sharing: Sharing, run: i64) -> Result<Lease, LeaseError> {
        Lease::acquire(dir, Path::new("/"), PLACE, sharing, &holder(run))
    }

    #[test]
    fn a_second_holder_is_refused_and_told_of_the_first_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let lease = acquire(dir.path(), Sharing::Exclusive, 7).unwrap();
        assert_eq!(lease.path(), lease_path(dir.path(), PLACE));
        let error = acquire(dir.path(), Sharing::Exclusive, 8).unwrap_err();
        assert_eq!(error.to_string(), "/ is in use by run 7 of board default (task t_0badcafe)");
        assert!(acquire(dir.path(), Sharing::Shared, 8).is_err());
        drop(lease);
        acquire(dir.path(), Sharing::Exclusive, 8).unwrap();
    }

    #[test]
    fn shared_leases_go_together_and_not_with_an_exclusive_one() {
        let dir = tempfile::tempdir().unwrap();
        let _first = acquire(dir.path(), Sharing::Shared, 1).unwrap();
        let _second = acquire(dir.path(), Sharing::Shared, 2).unwrap();
        assert!(matches!(acquire(dir.path(), Sharing::Exclusive, 3), Err(LeaseError::HeldInside { .. })));
    }

    #[test]
    fn a_lease_of_another_process_is_respected_and_its_holder_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "lease::tests::holds_a_lease_until_stdin_ends"])
            .env("LEASES_DIR", dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("held")));
        let Err(LeaseError::Held { holder: Some(found), .. }) = acquire(dir.path(), Sharing::Exclusive, 8)
        else {
            panic!("the lease of another process was not respected");
        };
        assert_eq!(found, holder(7));
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        acquire(dir.path(), Sharing::Exclusive, 8).unwrap();
    }

    #[test]
    #[ignore = "the other process of a_lease_of_another_process_is_respected_and_its_holder_named"]
    fn holds_a_lease_until_stdin_ends() {
        let Some(dir) = std::env::var_os("LEASES_DIR") else { return };
        let _lease = acquire(Path::new(&dir), Sharing::Exclusive, 7).unwrap();
        println!("held");
        io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
    }

    #[test]
    fn a_child_process_does_not_inherit_the_lease() {
        let dir = tempfile::tempdir().unwrap();
        let lease = acquire(dir.path(), Sharing::Exclusive, 7).unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        drop(lease);
        acquire(dir.path(), Sharing::Exclusive, 8).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_directory_and_one_inside_it_are_not_leased_together_and_two_side_by_side_are() {
        let leases = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let outer = dir.path().canonicalize().unwrap().join("x");
        let [inner, other] = ["a/inner", "b"].map(|name| outer.join(name));
        for path in [&inner, &other] {
            fs_err::create_dir_all(path).unwrap();
        }
        let take = |path: &Path, run| {
            let place = Place::of(&rustix::fs::stat(path).unwrap());
            Lease::acquire(leases.path(), path, place, Sharing::Exclusive, &holder(run))
        };
        let first = take(&outer, 7).unwrap();
        let error = take(&inner, 8).unwrap_err();
        assert!(matches!(&error, LeaseError::HeldAbove { above, .. } if *above == outer), "{error}");
        assert!(error.to_string().contains("run 7 of board default"), "{error}");
        drop(first);
        let inside = take(&inner, 8).unwrap();
        let beside = take(&other, 9).unwrap();
        assert!(matches!(take(&outer, 7), Err(LeaseError::HeldInside { .. })));
        drop((inside, beside));
        take(&outer, 7).unwrap();
    }

    #[test]
    fn a_sweep_takes_the_files_that_nobody_holds() {
        let dir = tempfile::tempdir().unwrap();
        drop(acquire(dir.path(), Sharing::Exclusive, 7).unwrap());
        let other = Place { device: 1, inode: 2 };
        let _kept =
            Lease::acquire(dir.path(), Path::new("/"), other, Sharing::Exclusive, &holder(9)).unwrap();
        fs_err::write(dir.path().join("unrelated"), "").unwrap();
        assert_eq!(sweep_leases(dir.path()).unwrap(), 1);
        assert!(lease_path(dir.path(), other).exists() && dir.path().join("unrelated").exists());
    }
}
