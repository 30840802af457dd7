//! Opens the cgroup of a run for the process that becomes its worker, sets its limits, and moves the process into it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::controller::Controller;
use crate::limits::Limits;

/// Period of `cpu.max`, in microseconds (cgroup-v2.rst).
const PERIOD_US: f64 = 100_000.0;

/// Limit that the cgroup cannot enforce, with the reason.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) controller: Controller,
    pub(crate) why: String,
}

/// Open cgroup, with the values of its limits. The files are opened while a refusal is still possible, and written
/// later.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    procs: File,
    limits: Vec<(File, String)>,
}

impl Cgroup {
    /// Opens a cgroup v2 directory and the files of the limits. Also returns the limits whose files cannot be opened.
    ///
    /// # Errors
    /// Fails if its `cgroup.procs` cannot be opened for writing.
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
        // `memory.max` does not count swapped memory, so the group may not swap. A kernel without swap accounting has no
        // such file.
        if limits.memory.is_some()
            && let Ok(file) = control("memory.swap.max")
        {
            held.push((file, "0".to_owned()));
        }
        Ok((Self { path: path.to_owned(), procs, limits: held }, gaps))
    }

    /// Sets the limits and moves the calling process into the cgroup, unless it is in there already.
    ///
    /// # Errors
    /// Fails if a file of the cgroup cannot be written. The error has the path of the cgroup.
    pub(crate) fn join(mut self) -> Result<(), (PathBuf, io::Error)> {
        let path = self.path.clone();
        self.hold().map_err(|source| (path.clone(), source))?;
        if is_member(&path) {
            return Ok(());
        }
        // A process id of 0 stands for the writing process.
        self.procs.write_all(b"0").map_err(|source| (path, source))
    }

    /// Writes the limits to the files of the cgroup.
    pub(crate) fn hold(&mut self) -> io::Result<()> {
        self.limits.iter_mut().try_for_each(|(file, value)| file.write_all(value.as_bytes()))
    }
}

/// Returns true if the calling process is in the cgroup already. The check saves time: even a move that changes nothing
/// waits for an RCU grace period of the kernel.
fn is_member(path: &Path) -> bool {
    let own_pid = std::process::id();
    std::fs::read_to_string(path.join("cgroup.procs"))
        .is_ok_and(|pids| pids.lines().any(|pid| pid.parse() == Ok(own_pid)))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, read_to_string, write};

    use super::*;
    use crate::limits::ByteSize;

    /// A directory with the controls of a cgroup.
    fn group(controls: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in controls {
            write(dir.path().join(name), "").unwrap();
        }
        dir
    }

    fn limits() -> Limits {
        Limits { pids: Some(7), memory: Some(ByteSize(64 << 20)), cpu: Some(1.5), ..Limits::default() }
    }

    #[test]
    fn a_process_joins_a_group_that_holds_its_limits() {
        let controls = ["cgroup.procs", "pids.max", "memory.max", "memory.swap.max", "cpu.max"];
        let group = group(&controls);
        let (cgroup, gaps) = Cgroup::open(group.path(), &limits()).unwrap();
        assert!(gaps.is_empty(), "{gaps:?}");
        cgroup.join().unwrap();
        let written = controls.map(|name| read_to_string(group.path().join(name)).unwrap());
        assert_eq!(written, ["0", "7", "67108864", "0", "150000 100000"]);
    }

    #[test]
    fn a_process_that_was_born_in_its_group_is_not_moved() {
        let own = std::process::id();
        for (members, after) in
            [("1\n".to_owned(), "0\n".to_owned()), (format!("1\n{own}\n"), format!("1\n{own}\n"))]
        {
            let group = group(&["cgroup.procs"]);
            let procs = group.path().join("cgroup.procs");
            write(&procs, members).unwrap();
            Cgroup::open(group.path(), &Limits::default()).unwrap().0.join().unwrap();
            assert_eq!(read_to_string(procs).unwrap(), after);
        }
    }

    #[test]
    fn a_limit_that_a_group_does_not_hold_is_named_with_the_reason() {
        let group = group(&["cgroup.procs", "cpu.max"]);
        create_dir(group.path().join("memory.max")).unwrap();
        let (_, gaps) = Cgroup::open(group.path(), &limits()).unwrap();
        let reasons: Vec<&str> = gaps.iter().map(|gap| gap.why.as_str()).collect();
        assert_eq!(
            reasons,
            ["pids.max: the run's group has no pids controller", "memory.max: Is a directory (os error 21)"]
        );
    }
}
