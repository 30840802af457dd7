//! Keeps a spare shim, so that a ready task does not wait for the start of its shim.
//!
//! To move a process into a cgroup the kernel waits for a grace period, often more than 10 ms if no process was moved
//! lately. The spare shim waits in advance. At first it is in the `work` leaf of a group, in which its worker will be
//! created, and it moves itself to the `shim` leaf while the worker already works. The shim receives the path of its
//! run directory on standard input, and exits if that is closed without a path.
//!
//! See decision 0011.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::cgroup::{self, Cgroups};

/// Spare shim, if one waits.
#[derive(Debug)]
pub struct Spares {
    cgroups: Option<Cgroups>,
    shelf: Mutex<Shelf>,
}

#[derive(Debug)]
enum Shelf {
    Empty,
    Waiting(Spare),
    Closed,
}

/// A waiting shim. Dropping it ends the shim and removes its group.
#[derive(Debug)]
pub struct Spare {
    child: Option<Child>,
    group: Option<PathBuf>,
}

impl Spares {
    /// Makes a store for one spare shim, which `refill` starts.
    pub fn new(cgroups: Option<&Cgroups>) -> Self {
        Spares { cgroups: cgroups.cloned(), shelf: Mutex::new(Shelf::Empty) }
    }

    /// Makes a store that stays empty.
    pub fn none() -> Self {
        Spares { cgroups: None, shelf: Mutex::new(Shelf::Closed) }
    }

    /// Starts a spare shim if none waits.
    pub fn refill(&self) {
        let mut place = self.lock();
        if matches!(*place, Shelf::Empty) {
            match Spare::start(self.cgroups.as_ref()) {
                Ok(spare) => *place = Shelf::Waiting(spare),
                // Runs start without a spare shim, only slower.
                Err(error) => tracing::debug!(%error, "no_spare_shim"),
            }
        }
    }

    /// Takes the waiting shim, if it lives.
    pub fn take(&self) -> Option<Spare> {
        let mut place = self.lock();
        if !matches!(*place, Shelf::Waiting(_)) {
            return None;
        }
        match std::mem::replace(&mut *place, Shelf::Empty) {
            Shelf::Waiting(mut spare) => spare.is_alive().then_some(spare),
            Shelf::Empty | Shelf::Closed => None,
        }
    }

    /// Ends the waiting shim; no other is started afterwards.
    pub fn close(&self) {
        *self.lock() = Shelf::Closed;
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spare {
    fn start(cgroups: Option<&Cgroups>) -> io::Result<Self> {
        let group = cgroups.map(Cgroups::make_spare).transpose()?;
        let mut spare = Spare { child: None, group };
        let child = Command::new("/proc/self/exe")
            .args(["__shim", "--wait"])
            .args(&spare.group)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        spare.child = Some(child);
        Ok(spare)
    }

    /// Returns the cgroup for its run; none on a host without cgroups.
    pub fn group(&self) -> Option<&Path> {
        self.group.as_deref()
    }

    /// Assigns its run. From now on the group belongs to the run.
    pub fn begin(mut self, run_dir: &Path) -> io::Result<Child> {
        self.group = None;
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdin = self.child.as_mut().and_then(|child| child.stdin.take()).ok_or_else(gone)?;
        // The path is shorter than an atomic write to a pipe, so the shim gets all of it or nothing.
        { stdin }.write_all(std::os::unix::ffi::OsStrExt::as_bytes(run_dir.as_os_str()))?;
        self.child.take().ok_or_else(gone)
    }

    fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The shim has not started anything.
            child.kill().ok();
            child.wait().ok();
        }
        if let Some(group) = self.group.take()
            && let Err(error) = cgroup::remove_run(&group)
        {
            tracing::warn!(path = %group.display(), %error, "cgroup_not_removed");
        }
    }
}
