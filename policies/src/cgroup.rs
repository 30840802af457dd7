//! Joining the run's cgroup, and the limits that it holds.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::limits::Limits;
use crate::report::{Layer, LayerReport};

/// `cpu.max` counts in this period (cgroup-v2.rst), in microseconds.
const PERIOD_US: f64 = 100_000.0;

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
    pub(crate) fn open(path: &Path, limits: &Limits) -> io::Result<(Self, LayerReport)> {
        let control = |name: &str| OpenOptions::new().write(true).open(path.join(name));
        let procs = control("cgroup.procs")?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a quota is positive and small"
        )]
        let quota = |cpu: f64| format!("{} {PERIOD_US}", (cpu * PERIOD_US).max(1000.0) as u64);
        let wanted = [
            ("pids.max", limits.pids.map(|count| count.to_string())),
            ("memory.max", limits.memory.map(|size| size.0.to_string())),
            ("cpu.max", limits.cpu.map(quota)),
        ];
        let mut held = Vec::new();
        let mut gaps = Vec::new();
        for (name, value) in wanted {
            let Some(value) = value else { continue };
            match control(name) {
                Ok(file) => held.push((file, value)),
                Err(error) => gaps.push(format!("{name}: {error}")),
            }
        }
        let report = LayerReport::unless(Layer::Cgroup, &gaps);
        Ok((Self { path: path.to_owned(), procs, limits: held }, report))
    }

    /// Sets the limits and moves the calling process.
    ///
    /// # Errors
    /// Names the cgroup.
    pub(crate) fn join(mut self) -> Result<(), (PathBuf, io::Error)> {
        let path = self.path;
        for (file, value) in &mut self.limits {
            file.write_all(value.as_bytes()).map_err(|source| (path.clone(), source))?;
        }
        if is_member(&path) {
            return Ok(());
        }
        self.procs.write_all(b"0").map_err(|source| (path, source))
    }
}

/// Whether the calling process was born in a cgroup. Even a move that changes nothing waits for the kernel's grace period.
fn is_member(path: &Path) -> bool {
    let own = std::process::id();
    std::fs::read_to_string(path.join("cgroup.procs"))
        .is_ok_and(|pids| pids.lines().any(|pid| pid.parse() == Ok(own)))
}
