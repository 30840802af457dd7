//! A run directory as daemon and shim open it: one accessor per record.
//!
//! See decision 0039.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{
    AgentMessage, ExitRecord, ExitSlot, LockGuard, LockState, MessagesRecord, OverdueRecord, PidRecord,
    RunSpec, ShimSpec, StartedRecord, Stdout, StopRequest, UnkillableRecord, VERSION, exit, lock, write_json,
};

const SPEC: &str = "spec.json";
const LOCK: &str = "lock";
const REVOKED: &str = "revoked";
const PID: &str = "pid";
const STARTED: &str = "started";
const STOP: &str = "stop";
const STDOUT: &str = "stdout";
const UNKILLABLE: &str = "unkillable";
const OVERDUE: &str = "overdue";
const EXIT: &str = "exit";
const PLACE: &str = "place";
const INBOX: &str = "inbox";
const MESSAGES: &str = "messages";
const HEARTBEAT: &str = "heartbeat";

/// Reasons why a run directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// The directory could not be made.
    #[error("create the run directory {path}")]
    Create {
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// There is no such directory.
    #[error("open the run directory {path}")]
    Open {
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The directory is a copy: its records belong to the run of the original.
    #[error("use the run directory {path}: it is a copy and belongs to another root")]
    Copied { path: PathBuf },
    /// The directory could not be removed.
    #[error("remove the run directory {path}")]
    Remove {
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A record could not be read.
    #[error("read {path}")]
    Read {
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A record is not in a form that this release understands.
    #[error("parse {path}")]
    Parse {
        path: PathBuf,
        /// The cause, with its line and column.
        #[source]
        source: serde_json::Error,
    },
    /// A record could not be written.
    #[error("write {path}")]
    Write {
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The lock could not be tried.
    #[error("lock {path}")]
    Lock {
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Identity of the file `place` on this host. A copy of the directory has another identity, and the same directory
/// under a new name has the same. Unlike the inode of a directory, the inode of a file is always stable (overlayfs.rst,
/// "Inode properties").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn from_metadata(meta: &fs::Metadata) -> Self {
        FileId { device: meta.dev(), inode: meta.ino() }
    }

    /// Makes the file. Its content is its own identity.
    fn mark(path: &Path) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let text = serde_json::to_vec(&FileId::from_metadata(&file.metadata()?))?;
        (&file).write_all(&text)
    }

    /// Returns true if the file has another identity than its content names, so that the directory is a copy.
    fn is_copied(path: &Path) -> io::Result<bool> {
        let mut text = Vec::new();
        let meta = match fs::File::open(path) {
            Ok(mut file) => {
                file.read_to_end(&mut text)?;
                file.metadata()?
            }
            // The maker of the directory was killed before it made the file. No shim was ever started for such a run.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        // An empty file has the same reason.
        Ok(!text.is_empty() && serde_json::from_slice(&text).ok() != Some(FileId::from_metadata(&meta)))
    }
}

/// Fields of the spec in every version.
#[derive(Debug, Deserialize)]
struct Versioned {
    version: u32,
}

/// Directory of one run. It exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes the directory (mode 0700) and its spec (mode 0600). The directory above it must exist.
    ///
    /// Fails if the directory exists, because each run has its own.
    pub fn create(path: &Path, spec: &RunSpec) -> Result<Self, RunDirError> {
        DirBuilder::new()
            .mode(0o700)
            .create(path)
            .map_err(|source| RunDirError::Create { path: path.to_owned(), source })?;
        let directory = Self { path: path.to_owned() };
        let place = path.join(PLACE);
        FileId::mark(&place).map_err(|source| RunDirError::Write { path: place, source })?;
        directory.write(SPEC, spec)?;
        Ok(directory)
    }

    /// Opens an existing directory of a run, and refuses a copy of one.
    pub fn open(path: &Path) -> Result<Self, RunDirError> {
        let failed = |source| RunDirError::Open { path: path.to_owned(), source };
        if !fs::metadata(path).map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        let directory = Self { path: path.to_owned() };
        let place = path.join(PLACE);
        let is_copy =
            FileId::is_copied(&place).map_err(|source| RunDirError::Read { path: place, source })?;
        if is_copy { Err(RunDirError::Copied { path: path.to_owned() }) } else { Ok(directory) }
    }

    /// Removes the directory of a run that is over.
    ///
    /// The directory is first renamed, in one step. So a late shim finds no directory, and never a directory that has
    /// its spec and lacks its `revoked`.
    pub fn remove(&self) -> Result<(), RunDirError> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let gone = self.path.with_file_name(format!(".{name}.gone"));
        let renamed = match fs::rename(&self.path, &gone) {
            // An earlier try has renamed the directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound && gone.exists() => Ok(()),
            renamed => renamed,
        };
        let removed = renamed.and_then(|()| fs::remove_dir_all(&gone));
        removed.map_err(|source| RunDirError::Remove { path: self.path.clone(), source })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the spec of the run.
    pub fn spec(&self) -> Result<RunSpec, RunDirError> {
        self.read_present(SPEC)
    }

    /// Reads the version of the directory, which any release may have made.
    pub fn version(&self) -> Result<u32, RunDirError> {
        let Versioned { version } = self.read_present(SPEC)?;
        Ok(version)
    }

    /// Reads the part of the spec that the shim uses.
    pub(crate) fn shim_spec(&self) -> Result<ShimSpec, RunDirError> {
        self.read_present(SPEC)
    }

    /// Reads the identity of the shim; none if no shim has begun.
    pub fn pid(&self) -> Result<Option<PidRecord>, RunDirError> {
        self.read(PID)
    }

    /// Records the identity of the shim.
    pub(crate) fn write_pid(&self, record: &PidRecord) -> Result<(), RunDirError> {
        self.write(PID, record)
    }

    /// Reads the record of the exec and its restrictions; none if the command was not executed, or not yet.
    pub fn started(&self) -> Result<Option<StartedRecord>, RunDirError> {
        self.read(STARTED)
    }

    /// Records that the command was exec'ed.
    pub(crate) fn write_started(&self, record: &StartedRecord) -> Result<(), RunDirError> {
        self.write(STARTED, record)
    }

    /// Reads the end of the run; none if there is no complete record.
    ///
    /// As long as the lock is held, a record says nothing about the present.
    ///
    /// # Errors
    /// Fails if the record cannot be read for now, so that nothing is known of the end.
    pub fn exit(&self) -> Result<Option<ExitRecord>, RunDirError> {
        let path = self.path.join(EXIT);
        match fs::read(&path) {
            Ok(bytes) => Ok(exit::decode(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(RunDirError::Read { path, source }),
        }
    }

    /// Opens the place for the exit record and reserves its space.
    pub(crate) fn reserve_exit(&self) -> Result<ExitSlot, RunDirError> {
        let path = self.path.join(EXIT);
        ExitSlot::reserve(&path).map_err(|source| RunDirError::Write { path, source })
    }

    /// Takes the lock if it is free. A held lock means that the shim lives.
    pub fn lock_state(&self) -> Result<LockState, RunDirError> {
        let path = self.path.join(LOCK);
        lock::try_lock(&path).map_err(|source| RunDirError::Lock { path, source })
    }

    /// Takes the lock, waiting until it is free.
    pub fn lock(&self) -> Result<LockGuard, RunDirError> {
        let path = self.path.join(LOCK);
        lock::lock(&path).map_err(|source| RunDirError::Lock { path, source })
    }

    /// Makes sure that no shim will ever run this directory, then frees the lock.
    pub fn revoke(&self, guard: LockGuard) -> Result<(), RunDirError> {
        let written = self.write(REVOKED, &VERSION);
        drop(guard);
        written
    }

    /// Returns true if the run was revoked; valid only under the lock.
    pub(crate) fn is_revoked(&self) -> Result<bool, RunDirError> {
        let path = self.path.join(REVOKED);
        path.try_exists().map_err(|source| RunDirError::Read { path, source })
    }

    /// Stores the request to end the run. The shim reads it when it gets SIGTERM, which the caller sends.
    pub fn request_stop(&self, request: &StopRequest) -> Result<(), RunDirError> {
        self.write(STOP, request)
    }

    /// Reads the request to end the run; none without a request.
    pub(crate) fn stop_request(&self) -> Result<Option<StopRequest>, RunDirError> {
        self.read(STOP)
    }

    /// Records that the worker has reported progress. A run that is over needs no record.
    pub fn note_heartbeat(path: &Path) -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join(HEARTBEAT));
        match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            file => file?.set_modified(SystemTime::now()),
        }
    }

    /// Returns the time of the worker's last heartbeat, by the host's clock; none without a heartbeat.
    pub(crate) fn heartbeat(&self) -> Option<SystemTime> {
        fs::metadata(self.path.join(HEARTBEAT)).and_then(|meta| meta.modified()).ok()
    }

    /// Returns the file of the worker's standard output.
    pub(crate) fn stdout_path(&self) -> PathBuf {
        self.path.join(STDOUT)
    }

    /// Opens the standard output of a run that has ended with this record.
    pub fn stdout(&self, record: &ExitRecord) -> Result<Stdout, RunDirError> {
        let path = self.stdout_path();
        Stdout::open(&path, record).map_err(|source| RunDirError::Read { path, source })
    }

    /// Opens the standard output of a live run so far, and returns its length.
    pub fn stdout_so_far(&self) -> Result<(Stdout, u64), RunDirError> {
        let path = self.stdout_path();
        Stdout::so_far(&path).map_err(|source| RunDirError::Read { path, source })
    }

    /// Stores a message for the shim. Storing the same message again changes nothing, because the shim takes each
    /// number once. The shim looks for messages when it begins, and at SIGUSR1, which the caller sends.
    pub fn post(&self, message: &AgentMessage) -> Result<(), RunDirError> {
        let inbox = self.path.join(INBOX);
        let made = match DirBuilder::new().mode(0o700).create(&inbox) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        made.and_then(|()| write_json(&inbox, &message.number.to_string(), message))
            .map_err(|source| RunDirError::Write { path: inbox.join(message.number.to_string()), source })
    }

    /// Reads a message in the form in which it is passed on: a line. None if there is no such message.
    pub(crate) fn message(&self, number: u32) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path.join(INBOX).join(number.to_string())) {
            Ok(line) => Ok(Some(line)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the receipts of messages; none if no message was passed on.
    pub fn messages(&self) -> Result<Option<MessagesRecord>, RunDirError> {
        self.read(MESSAGES)
    }

    /// Records the receipts of messages.
    pub(crate) fn write_messages(&self, record: &MessagesRecord) -> Result<(), RunDirError> {
        self.write(MESSAGES, record)
    }

    /// Reads the processes that outlive SIGKILL; none if there are none.
    ///
    /// Once the lock is free, a record says nothing about the present.
    pub fn unkillable(&self) -> Result<Option<UnkillableRecord>, RunDirError> {
        self.read(UNKILLABLE)
    }

    /// Records the processes that outlive SIGKILL.
    pub(crate) fn write_unkillable(&self, record: &UnkillableRecord) -> Result<(), RunDirError> {
        self.write(UNKILLABLE, record)
    }

    /// Removes the record of processes that outlived SIGKILL.
    pub(crate) fn clear_unkillable(&self) -> Result<(), RunDirError> {
        let path = self.path.join(UNKILLABLE);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(RunDirError::Write { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Records the reason for which the shim should have ended the run, before it is killed because it did not.
    pub fn note_overdue(&self, record: &OverdueRecord) -> Result<(), RunDirError> {
        self.write(OVERDUE, record)
    }

    /// Reads the reason for which the shim should have ended the run; none if it was not killed for that.
    pub fn overdue(&self) -> Result<Option<OverdueRecord>, RunDirError> {
        self.read(OVERDUE)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RunDirError> {
        match self.read_present(name) {
            Ok(record) => Ok(Some(record)),
            Err(RunDirError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_present<T: DeserializeOwned>(&self, name: &str) -> Result<T, RunDirError> {
        let path = self.path.join(name);
        let bytes = fs::read(&path).map_err(|source| RunDirError::Read { path: path.clone(), source })?;
        serde_json::from_slice(&bytes).map_err(|source| RunDirError::Parse { path, source })
    }

    fn write<T: serde::Serialize>(&self, name: &str, record: &T) -> Result<(), RunDirError> {
        write_json(&self.path, name, record)
            .map_err(|source| RunDirError::Write { path: self.path.join(name), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::StopReason;

    #[test]
    fn a_revoked_run_is_seen_by_the_next_who_takes_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::open(place.path()).unwrap();
        let LockState::Free(guard) = run.lock_state().unwrap() else { panic!("nobody has the lock") };
        run.revoke(guard).unwrap();
        let _guard = run.lock().unwrap();
        assert!(run.is_revoked().unwrap());
        assert_eq!(run.pid().unwrap(), None);
    }

    #[test]
    fn a_record_that_cannot_be_read_for_now_says_nothing_of_the_end() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::open(place.path()).unwrap();
        assert_eq!(run.exit().unwrap(), None);
        // A read of it fails with EIO, as that of a bad disk.
        std::os::unix::fs::symlink("/proc/self/mem", place.path().join(EXIT)).unwrap();
        assert!(crate::shortage::is_shortage(&run.exit().unwrap_err()));
    }

    #[test]
    fn a_moved_directory_is_the_runs_and_a_copy_is_not() {
        let place = tempfile::tempdir().unwrap();
        let [made, moved, copy] = ["7", "8", "9"].map(|name| place.path().join(name));
        fs::create_dir(&made).unwrap();
        FileId::mark(&made.join(PLACE)).unwrap();
        RunDir::open(&made).unwrap();
        fs::rename(&made, &moved).unwrap();
        RunDir::open(&moved).unwrap();
        fs::create_dir(&copy).unwrap();
        fs::copy(moved.join(PLACE), copy.join(PLACE)).unwrap();
        assert!(matches!(RunDir::open(&copy), Err(RunDirError::Copied { .. })));
        fs::write(moved.join(PLACE), "{").unwrap();
        assert!(matches!(RunDir::open(&moved), Err(RunDirError::Copied { .. })));
    }

    #[test]
    fn a_removed_directory_is_gone_for_those_who_still_have_its_path() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("7");
        fs::create_dir(&path).unwrap();
        let late = RunDir::open(&path).unwrap();
        let LockState::Free(guard) = late.lock_state().unwrap() else { panic!("nobody has the lock") };
        late.clone().revoke(guard).unwrap();
        RunDir::open(&path).unwrap().remove().unwrap();
        assert!(late.lock_state().is_err() && late.reserve_exit().is_err() && late.spec().is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_stop_request_comes_back_and_a_damaged_one_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::open(place.path()).unwrap();
        assert_eq!(run.stop_request().unwrap(), None);
        let request =
            StopRequest { version: 1, reason: StopReason::Verdict, quiet_ms: 10_000, grace_ms: 5_000 };
        run.request_stop(&request).unwrap();
        assert_eq!(run.stop_request().unwrap(), Some(request));
        fs::write(place.path().join(STOP), "{\"version\":").unwrap();
        assert!(matches!(run.stop_request(), Err(RunDirError::Parse { .. })));
    }
}
