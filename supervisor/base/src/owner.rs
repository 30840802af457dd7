//! The lock of a root. At most one process at a time owns the boards of a root; the lock records that process.

use std::fmt;
use std::io::{Read as _, Seek as _, Write as _};

use serde::{Deserialize, Serialize};
use shim::lock_file::LockFile;
use shim::rundir::boottime_us;

use crate::failure::Failure;
use crate::paths::Root;

/// Startup time of a daemon, in microseconds; a younger daemon may have no socket yet.
const STARTS_WITHIN_US: u64 = 10_000_000;
/// Multiple of the length of a record in the lock, in bytes.
const RECORD: usize = 64;

/// Role in which a process owns a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Daemon,
    /// A daemon that ends once no work is left.
    Pass,
    /// A command that writes to a board while no daemon runs.
    Command,
    /// A command that replaces or repairs the files of boards.
    Files,
    /// A role of another release, or a record that could not be written.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Record in the lock about the owner. Only messages and waits use it; the lock itself proves the ownership.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub role: Role,
    /// Process id; none if the record could not be written.
    pub pid: Option<i32>,
}

/// Ownership of a root, as far as this user may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    Free,
    Owned(Owner),
    /// The lock is closed to this user: another user owns the root. Only its sockets show if a daemon serves it.
    Hidden,
}

/// Lock of a root, held by this process. The kernel releases it however the process ends.
#[derive(Debug)]
pub struct OwnerLock {
    _lock: LockFile,
}

impl OwnerLock {
    /// Takes the lock if it is free, and records this process as the owner.
    pub fn try_acquire(root: &Root, role: Role) -> Result<Option<Self>, Failure> {
        let path = root.owner_lock();
        let lock = LockFile::try_lock(&path).map_err(|e| Failure::file("take the lock", &path, &e))?;
        let Some(mut lock) = lock else { return Ok(None) };
        let record = serde_json::to_vec(&Owner { role, pid: i32::try_from(std::process::id()).ok() });
        // A full disk must not prevent the ownership: without a record the root is owned by an unknown process.
        let file = lock.file();
        let written = record.map_err(std::io::Error::from).and_then(|mut record| {
            // Records of one length replace each other in one write, and the file keeps its block.
            record.resize(record.len().next_multiple_of(RECORD), b' ');
            file.rewind()?;
            file.write_all(&record)?;
            let length = u64::try_from(record.len()).unwrap_or(u64::MAX);
            if file.metadata()?.len() == length { Ok(()) } else { file.set_len(length) }
        });
        written.ok();
        Ok(Some(OwnerLock { _lock: lock }))
    }

    /// Returns the daemon that owns the root, if a live daemon does.
    pub fn daemon(root: &Root) -> Option<Owner> {
        Self::owner(root).filter(|owner| owner.role == Role::Daemon && owner.is_alive())
    }

    /// Returns the owner; none if the root is free, or if this user may not see the lock.
    pub fn owner(root: &Root) -> Option<Owner> {
        match Self::ownership(root) {
            Ownership::Owned(owner) => Some(owner),
            Ownership::Free | Ownership::Hidden => None,
        }
    }

    /// Reads the ownership of the root.
    pub fn ownership(root: &Root) -> Ownership {
        let mut file = match std::fs::File::open(root.owner_lock()) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Ownership::Hidden,
            Err(_) => return Ownership::Free,
        };
        let mut record = Vec::new();
        let is_owned = file.read_to_end(&mut record).is_ok() && file.try_lock_shared().is_err();
        if is_owned {
            Ownership::Owned(serde_json::from_slice(&record).unwrap_or_default())
        } else {
            Ownership::Free
        }
    }
}

impl Owner {
    /// Makes an owner from the process that made a socket, for a lock that this user may not read.
    pub fn of_socket(pid: i32) -> Self {
        Owner { role: Role::Unknown, pid: Some(pid) }
    }

    /// Returns true if the process still lives and is no zombie.
    ///
    /// A process that a killed daemon was just starting keeps the daemon's lock for a moment: exec closes the
    /// descriptor, the fork before it does not.
    fn is_alive(self) -> bool {
        self.state().is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    /// Returns the process id, if it was recorded.
    pub fn pid(self) -> Option<i32> {
        self.pid
    }

    /// Returns the process id if the process is stopped: it answers no request until it is continued.
    pub fn stopped(self) -> Option<i32> {
        self.pid.filter(|_| self.state().is_some_and(|state| matches!(state, 'T' | 't')))
    }

    /// Returns true if the process started a moment ago. A daemon takes its lock before it opens its socket.
    pub fn is_starting(self) -> bool {
        let stat = self
            .pid
            .and_then(|pid| procfs::process::Process::new(pid).and_then(|process| process.stat()).ok());
        stat.is_some_and(|stat| {
            let started_us = stat.starttime.saturating_mul(1_000_000) / procfs::ticks_per_second();
            boottime_us().saturating_sub(started_us) < STARTS_WITHIN_US
        })
    }

    /// Returns the state letter of the process (`proc_pid_stat(5)`).
    fn state(self) -> Option<char> {
        let stat = procfs::process::Process::new(self.pid?).and_then(|process| process.stat()).ok()?;
        Some(stat.state)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.role {
            Role::Daemon => "a daemon",
            Role::Pass => "a dispatch pass",
            Role::Command => "a command without a daemon",
            Role::Files => "a command that works on files",
            Role::Unknown => "another process",
        })?;
        self.pid.map_or(Ok(()), |pid| write!(f, ", pid {pid}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::RootChoice;

    fn daemon(pid: Option<i32>) -> Owner {
        Owner { role: Role::Daemon, pid }
    }

    #[test]
    fn an_owner_that_has_ended_does_not_live() {
        let own = daemon(i32::try_from(std::process::id()).ok());
        assert!(own.is_alive() && own.is_starting());
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(ended.id()).ok();
        ended.wait().unwrap();
        assert!(!daemon(pid).is_alive() && !daemon(None).is_alive() && !daemon(None).is_starting());
    }

    #[test]
    fn the_second_taker_finds_who_owns_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        assert_eq!(OwnerLock::owner(&root), None);
        let lock = OwnerLock::try_acquire(&root, Role::Pass).unwrap().unwrap();
        assert!(OwnerLock::try_acquire(&root, Role::Command).unwrap().is_none());
        let owner = OwnerLock::owner(&root).unwrap();
        assert_eq!((owner.role, owner.pid), (Role::Pass, i32::try_from(std::process::id()).ok()));
        assert_eq!(OwnerLock::daemon(&root), None, "a pass is no daemon that is asked to stop");
        drop(lock);
        assert_eq!(OwnerLock::owner(&root), None);
    }

    #[test]
    fn a_lock_that_is_closed_to_this_user_does_not_say_that_the_root_is_free() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().join("r")), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        assert_eq!(OwnerLock::ownership(&root), Ownership::Free, "nothing is there");
        std::fs::create_dir(root.dir()).unwrap();
        drop(OwnerLock::try_acquire(&root, Role::Daemon).unwrap());
        assert_eq!(OwnerLock::ownership(&root), Ownership::Free);
        std::fs::set_permissions(root.dir(), std::fs::Permissions::from_mode(0o000)).unwrap();
        let ownership = OwnerLock::ownership(&root);
        std::fs::set_permissions(root.dir(), std::fs::Permissions::from_mode(0o700)).unwrap();
        // Root can read every file.
        let is_root = nix::unistd::geteuid().is_root();
        assert_eq!(ownership, if is_root { Ownership::Free } else { Ownership::Hidden });
    }

    #[test]
    fn a_record_that_another_release_wrote_still_says_that_the_root_is_owned() {
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        let _lock = OwnerLock::try_acquire(&root, Role::Daemon).unwrap().unwrap();
        let written = [
            ("a daemon, pid 7", "another process"),
            (r#"{"role":"seer","pid":7}"#, "another process, pid 7"),
        ];
        for (record, shown) in written {
            std::fs::write(root.owner_lock(), record).unwrap();
            assert_eq!(OwnerLock::owner(&root).unwrap().to_string(), shown);
        }
    }
}
