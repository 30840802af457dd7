//! A shim that waits for its run, so that a ready task does not wait for its shim.
//!
//! To move a process into a cgroup the kernel waits for a grace period, often for more than 10 ms where nothing was
//! moved lately. The spare shim has had that wait behind it: it stands in the `work` leaf of a group, where its worker
//! is born, and moves itself to the `shim` leaf while the worker already works. It gets the path of its run directory
//! on standard input, and ends by itself when that is closed without one.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::cgroup::{self, Cgroups};

/// The waiting shim, if there is one.
#[derive(Debug)]
pub(crate) struct Spares {
    cgroups: Option<Cgroups>,
    shelf: Mutex<Shelf>,
}

#[derive(Debug)]
enum Shelf {
    Empty,
    Waiting(Spare),
    Closed,
}

/// A waiting shim. One that is dropped ends, and its group goes.
#[derive(Debug)]
pub(crate) struct Spare {
    child: Option<Child>,
    group: Option<PathBuf>,
}

impl Spares {
    /// A shelf that `refill` puts a shim on.
    pub(crate) fn kept(cgroups: Option<&Cgroups>) -> Self {
        Spares { cgroups: cgroups.cloned(), shelf: Mutex::new(Shelf::Empty) }
    }

    /// A shelf that stays empty.
    pub(crate) fn none() -> Self {
        Spares { cgroups: None, shelf: Mutex::new(Shelf::Closed) }
    }

    /// Starts a shim if none waits.
    pub(crate) fn refill(&self) {
        let mut place = self.lock();
        if matches!(*place, Shelf::Empty) {
            match Spare::start(self.cgroups.as_ref()) {
                Ok(spare) => *place = Shelf::Waiting(spare),
                // Runs start without it.
                Err(error) => tracing::debug!(%error, "no_spare_shim"),
            }
        }
    }

    /// Takes the waiting shim.
    pub(crate) fn take(&self) -> Option<Spare> {
        let mut place = self.lock();
        if !matches!(*place, Shelf::Waiting(_)) {
            return None;
        }
        match std::mem::replace(&mut *place, Shelf::Empty) {
            Shelf::Waiting(mut spare) => spare.is_alive().then_some(spare),
            Shelf::Empty | Shelf::Closed => None,
        }
    }

    /// Ends the waiting shim, for good.
    pub(crate) fn close(&self) {
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

    /// The cgroup of its run; none on a host without.
    pub(crate) fn group(&self) -> Option<&Path> {
        self.group.as_deref()
    }

    /// Gives it its run. The group is the run's from now on.
    pub(crate) fn begin(mut self, run_dir: &Path) -> io::Result<Child> {
        self.group = None;
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdin = self.child.as_mut().and_then(|child| child.stdin.take()).ok_or_else(gone)?;
        // Shorter than what a pipe takes at once, so the shim gets all of it or nothing.
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
            // It has begun nothing.
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
