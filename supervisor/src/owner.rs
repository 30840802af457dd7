//! The root's lock: one process at a time owns the boards of a root, and says who it is.

use std::fmt;
use std::io::{Read as _, Seek as _, Write as _};

use serde::{Deserialize, Serialize};
use shim::lock_file::LockFile;
use shim::rundir::boottime_us;

use crate::failure::Failure;
use crate::paths::Root;

/// How long a daemon may take until it answers, in microseconds.
const STARTS_WITHIN_US: u64 = 10_000_000;

/// As what a process owns a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Daemon,
    /// A daemon that goes on until nothing is left to do.
    Pass,
    /// A command that writes to a board while no daemon runs.
    Command,
    /// A command that replaces or repairs the files of boards.
    Files,
    /// One that another release has, or that could not be written down.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The record in the lock: who owns the root. It is read by messages and by waits; that the root is owned is known by the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) role: Role,
    /// Its pid; none where it could not be written down.
    pub(crate) pid: Option<i32>,
}

/// What a user may know of who owns a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    Free,
    Owned(Owner),
    /// Its lock is closed to this user: the root is somebody else's, and whether a daemon serves it is known by its sockets.
    Hidden,
}

/// The owned lock. The kernel frees it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    _lock: LockFile,
}

impl OwnerLock {
    /// Takes the lock if it is free, and writes down who owns it.
    pub(crate) fn try_acquire(root: &Root, role: Role) -> Result<Option<Self>, Failure> {
        let path = root.owner_lock();
        let lock = LockFile::try_lock(&path).map_err(|e| Failure::file("take the lock", &path, &e))?;
        let Some(mut lock) = lock else { return Ok(None) };
        let record = serde_json::to_vec(&Owner { role, pid: i32::try_from(std::process::id()).ok() });
        // A full disk does not make it a failure: the root is owned all the same, by nobody knows whom.
        let file = lock.file();
        let written = record.map_err(std::io::Error::from).and_then(|record| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&record)
        });
        written.ok();
        Ok(Some(OwnerLock { _lock: lock }))
    }

    /// The daemon that owns the root; none where none does.
    pub(crate) fn daemon(root: &Root) -> Option<Owner> {
        Self::owner(root).filter(|owner| owner.role == Role::Daemon && owner.is_alive())
    }

    /// Who owns the root; none if it is free, or if this user may not know.
    pub(crate) fn owner(root: &Root) -> Option<Owner> {
        match Self::ownership(root) {
            Ownership::Owned(owner) => Some(owner),
            Ownership::Free | Ownership::Hidden => None,
        }
    }

    /// Whether somebody owns the root, and who.
    pub(crate) fn ownership(root: &Root) -> Ownership {
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
    /// The process that made a socket, where the lock does not say who owns the root.
    pub(crate) fn of_socket(pid: i32) -> Self {
        Owner { role: Role::Unknown, pid: Some(pid) }
    }

    /// Whether the process still lives.
    ///
    /// A daemon that was killed while it started a process leaves its lock to that process for a moment: a descriptor is
    /// closed by exec, not by the fork before it.
    fn is_alive(self) -> bool {
        self.state().is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    /// Its pid, where it has written who it is.
    pub(crate) fn pid(self) -> Option<i32> {
        self.pid
    }

    /// Its pid, where it is stopped: it answers nobody until somebody lets it go on.
    pub(crate) fn stopped(self) -> Option<i32> {
        self.pid.filter(|_| self.state().is_some_and(|state| matches!(state, 'T' | 't')))
    }

    /// Whether it began a moment ago: it has its lock before it opens its socket.
    pub(crate) fn is_starting(self) -> bool {
        let stat = self
            .pid
            .and_then(|pid| procfs::process::Process::new(pid).and_then(|process| process.stat()).ok());
        stat.is_some_and(|stat| {
            let begun = stat.starttime.saturating_mul(1_000_000) / procfs::ticks_per_second();
            boottime_us().saturating_sub(begun) < STARTS_WITHIN_US
        })
    }

    /// The state of the process (`proc_pid_stat(5)`).
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
        // Nothing is closed to root.
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
