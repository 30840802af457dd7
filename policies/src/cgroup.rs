//! Joining the run's cgroup, and the limits that it enforces.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::controller::Controller;
use crate::limits::Limits;

/// `cpu.max` counts in this period (cgroup-v2.rst), in microseconds.
const PERIOD_US: f64 = 100_000.0;

/// A limit that a cgroup does not enforce.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) controller: Controller,
    pub(crate) why: String,
}

/// An open cgroup, ready to be joined.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    procs: File,
    limits: Vec<(File, String)>,
}

impl Cgroup {
    /// Opens a cgroup v2 directory and those of its controls that the limits need.
    ///
    /// # Errors
    /// When its `cgroup.procs` cannot be opened for writing.
    pub(crate) fn open(path: &Path, limits: &Limits) -> io::Result<(Self, Vec<Gap>)> {
        let control = |name: &str| OpenOptions::new().write(true).open(path.join(name));
        let procs = control("cgroup.procs")?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a quota is positive and small"
        )]
        let quota = |cpu: f64| format!("{} {PERIOD_US}", (cpu * PERIOD_US).max(1000.0) as u64);
        let wanted = [
            (Controller::Pids, "pids.max", limits.pids.map(|count| count.to_string())),
            (Controller::Memory, "memory.max", limits.memory.map(|size| size.0.to_string())),
            (Controller::Cpu, "cpu.max", limits.cpu.map(quota)),
        ];
        let mut held = Vec::new();
        let mut gaps = Vec::new();
        for (controller, name, value) in wanted {
            let Some(value) = value else { continue };
            match control(name) {
                Ok(file) => held.push((file, value)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => gaps.push(Gap {
                    controller,
                    why: format!("{name}: the run's group has no {} controller", controller.as_str()),
                }),
                Err(error) => gaps.push(Gap { controller, why: format!("{name}: {error}") }),
            }
        }
        // What is swapped out counts for no limit of memory; a kernel without swap accounting has no such file.
        if limits.memory.is_some()
            && let Ok(file) = control("memory.swap.max")
        {
            held.push((file, "0".to_owned()));
        }
        Ok((Self { path: path.to_owned(), procs, limits: held }, gaps))
    }

    /// Sets the limits and moves the calling process.
    ///
    /// # Errors
    /// Names the cgroup.
    pub(crate) fn join(mut self) -> Result<(), (PathBuf, io::Error)> {
        let path = self.path.clone();
        self.hold().map_err(|source| (path.clone(), source))?;
        if is_member(&path) {
            return Ok(());
        }
        self.procs.write_all(b"0").map_err(|source| (path, source))
    }

    /// Sets the limits.
    pub(crate) fn hold(&mut self) -> io::Result<()> {
        self.limits.iter_mut().try_for_each(|(file, value)| file.write_all(value.as_bytes()))
    }
}

/// Whether the calling process was born in a cgroup. Even a move that changes nothing waits for the kernel's grace period.
fn is_member(path: &Path) -> bool {
    let own = std::process::id();
    std::fs::read_to_string(path.join("cgroup.procs"))
        .is_ok_and(|pids| pids.lines().any(|pid| pid.parse() == Ok(own)))
}
