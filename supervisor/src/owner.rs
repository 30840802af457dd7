//! The root's lock: one process at a time owns the boards of a root, and says who it is.

use std::io::{Read as _, Seek as _, Write as _};

use crate::failure::Failure;
use crate::lock_file::LockFile;
use crate::paths::Root;

/// What a daemon writes into the lock.
pub(crate) const DAEMON: &str = "a daemon";

/// The held lock. The kernel frees it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    _held: LockFile,
}

impl OwnerLock {
    /// Takes the lock if it is free, and writes down who holds it.
    pub(crate) fn try_acquire(root: &Root, who: &str) -> Result<Option<Self>, Failure> {
        let path = root.owner_lock();
        let lock = LockFile::try_lock(&path).map_err(|e| Failure::file("take the lock", &path, &e))?;
        let Some(mut lock) = lock else { return Ok(None) };
        let text = format!("{who}, pid {}", std::process::id());
        // The text is for messages only, so a full disk does not make it a failure.
        let file = lock.file();
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes())).ok();
        Ok(Some(OwnerLock { _held: lock }))
    }

    /// The daemon that holds the lock, in words; none where none does.
    pub(crate) fn daemon(root: &Root) -> Option<String> {
        Self::holder(root).filter(|holder| holder.starts_with(DAEMON) && is_alive(holder))
    }

    /// Who holds the lock, in words; none if it is free.
    pub(crate) fn holder(root: &Root) -> Option<String> {
        let mut file = std::fs::File::open(root.owner_lock()).ok()?;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        file.try_lock_shared().is_err().then_some(text)
    }
}

/// The process that a lock names.
pub(crate) fn pid_of(holder: &str) -> Option<i32> {
    holder.rsplit_once("pid ").and_then(|(_, pid)| pid.trim().parse().ok())
}

/// Whether the process that a lock names still lives.
///
/// A daemon that was killed while it started a process leaves its lock to that process for a moment: a descriptor is
/// closed by exec, not by the fork before it.
pub(crate) fn is_alive(holder: &str) -> bool {
    state(holder).is_some_and(|(_, state)| !matches!(state, 'Z' | 'X'))
}

/// The pid of the process that a lock names, where it is stopped: it answers nobody until somebody lets it go on.
pub(crate) fn stopped(holder: &str) -> Option<i32> {
    state(holder).filter(|(_, state)| matches!(state, 'T' | 't')).map(|(pid, _)| pid)
}

/// The pid that a lock names, and the state of that process (`proc_pid_stat(5)`).
fn state(holder: &str) -> Option<(i32, char)> {
    let pid = pid_of(holder)?;
    let stat = procfs::process::Process::new(pid).and_then(|process| process.stat()).ok()?;
    Some((pid, stat.state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::RootChoice;

    #[test]
    fn a_holder_that_has_ended_does_not_live() {
        assert!(is_alive(&format!("a daemon, pid {}", std::process::id())));
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let pid = ended.id();
        ended.wait().unwrap();
        assert!(!is_alive(&format!("a daemon, pid {pid}")) && !is_alive("somebody"));
    }

    #[test]
    fn the_second_taker_is_told_who_holds_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        assert_eq!(OwnerLock::holder(&root), None);
        let lock = OwnerLock::try_acquire(&root, "a test").unwrap().unwrap();
        assert!(OwnerLock::try_acquire(&root, "another").unwrap().is_none());
        assert!(OwnerLock::holder(&root).unwrap().starts_with("a test, pid "));
        drop(lock);
        assert_eq!(OwnerLock::holder(&root), None);
    }
}
