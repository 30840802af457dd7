//! Keeps a spare shim, so that a ready task does not wait for the start of its shim.
//!
//! The move of a process into a cgroup takes the kernel a grace period, often more than 10 ms if no process was moved
//! lately. The spare shim is moved in advance: to the leaf `work` of a group, in which its worker will be created. It moves
//! itself to the leaf `shim` while the worker already works. The shim reads the path of its run directory from standard
//! input, and exits at the end of file without a path.
//!
//! See decision 0011.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::cgroup::{self, Cgroups};
use super::shim_program::ShimProgram;

/// Store for one spare shim.
#[derive(Debug)]
pub struct Spares {
    program: ShimProgram,
    cgroups: Option<Cgroups>,
    shelf: Mutex<Shelf>,
}

#[derive(Debug)]
enum Shelf {
    Empty,
    Waiting(Spare),
    Closed,
}

/// Waiting shim. Dropping the value ends the shim and removes its group.
#[derive(Debug)]
pub struct Spare {
    child: Option<Child>,
    group: Option<PathBuf>,
}

impl Spares {
    /// Makes a store for one spare shim, which `refill` starts.
    pub fn new(program: ShimProgram, cgroups: Option<&Cgroups>) -> Self {
        Spares { program, cgroups: cgroups.cloned(), shelf: Mutex::new(Shelf::Empty) }
    }

    /// Makes a store that stays empty.
    pub fn none(program: ShimProgram) -> Self {
        Spares { program, cgroups: None, shelf: Mutex::new(Shelf::Closed) }
    }

    /// Returns the program of shims, for a shim that is not started in advance.
    pub fn program(&self) -> &ShimProgram {
        &self.program
    }

    /// Starts a spare shim if none waits.
    pub fn refill(&self) {
        let mut place = self.lock();
        if matches!(*place, Shelf::Empty) {
            match Spare::start(&self.program, self.cgroups.as_ref()) {
                Ok(spare) => *place = Shelf::Waiting(spare),
                // Without a spare shim, runs start more slowly.
                Err(error) => tracing::debug!(%error, "no_spare_shim"),
            }
        }
    }

    /// Returns true if a spare shim is to be started. Does not block.
    pub fn wants_refill(&self) -> bool {
        match self.shelf.try_lock() {
            Ok(place) => matches!(*place, Shelf::Empty),
            // Another thread starts one or takes the last one.
            Err(_) => true,
        }
    }

    /// Takes the waiting shim; none if there is none or it has ended.
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
    fn start(program: &ShimProgram, cgroups: Option<&Cgroups>) -> io::Result<Self> {
        let group = cgroups.map(Cgroups::make_spare).transpose()?;
        let mut spare = Spare { child: None, group };
        let child = Command::new(program.path())
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

    /// Assigns a run to the shim. The group then belongs to the run.
    pub fn begin(mut self, run_dir: &Path) -> io::Result<Child> {
        self.group = None;
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdin = self.child.as_mut().and_then(|child| child.stdin.take()).ok_or_else(gone)?;
        // The path is shorter than PIPE_BUF, so the write is atomic (pipe(7)): the shim gets the whole path or nothing.
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
            // The shim has no run yet, so nothing else has to be ended.
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
