//! Returns the controllers of a service to systemd between two daemons, and freezes runs with limits meanwhile.
//!
//! systemd before 254 starts each main process of a unit in the unit's own group. The kernel refuses this (EBUSY)
//! while the group delegates controllers, and the groups of workers that outlive the daemon still use them. Therefore
//! the unit runs `supervisor __handback` after each end of the daemon (`ExecStopPost=`, which systemd starts in the
//! group `.control`):
//!
//! 1. runs with limits are frozen, so that they use no memory, processor or process while nothing enforces their
//!    limits;
//! 2. delegation is disabled, from the runs' groups upwards.
//!
//! The next daemon delegates the controllers again, sets the limits of each run that it takes over, and thaws the run
//! (`Cgroups::take_over`). Memory that a run holds at that time is not counted again: the kernel's count vanished
//! with the controller. If systemd made a leaf for the daemon, nothing needs to be done.
//!
//! See decision 0031.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use policies::Controller;

use super::cgroup::{self, Freezer, PREFIX};
use super::controllers::GIVEN_LEAF;

/// Group in which systemd runs the commands of a unit other than the main process.
const CONTROL: &str = ".control";
/// Time for all runs together to freeze. A process that waits in the kernel for a disk may need longer.
const STANDSTILL: Duration = Duration::from_secs(5);

/// Hands back the controllers of the service's group.
pub fn main() -> ExitCode {
    let done = cgroup::own().and_then(|own| match own.parent() {
        Some(unit) if own.file_name().is_some_and(|name| name == CONTROL) => {
            hand_back(unit, Instant::now() + STANDSTILL)
        }
        // The unit delegates nothing, or a person runs the command by hand.
        _ => Ok(Vec::new()),
    });
    match done {
        Ok(moving) => {
            for group in moving {
                log_line(format_args!("{} could not be frozen; its limits are not kept", group.display()));
            }
            ExitCode::SUCCESS
        }
        Err(why) => {
            log_line(format_args!("failed to hand the controllers back: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to the journal of the unit.
fn log_line(line: std::fmt::Arguments<'_>) {
    // There is no other place to report a closed standard error.
    drop(writeln!(io::stderr(), "supervisor: {line}"));
}

/// Disables delegation in a unit. Returns the groups that did not freeze in time.
fn hand_back(unit: &Path, until: Instant) -> Result<Vec<PathBuf>, String> {
    if unit.join(GIVEN_LEAF).exists() {
        return Ok(Vec::new());
    }
    let fail = |group: &Path, e: &io::Error| format!("{}: {e}", group.display());
    let limited: Vec<PathBuf> = runs(unit)
        .map_err(|e| fail(unit, &e))?
        .into_iter()
        .map(|run| run.join("work"))
        .filter(|work| has_limit(work))
        .collect();
    for work in &limited {
        cgroup::freeze(work, Freezer::Frozen).map_err(|e| fail(work, &e))?;
    }
    let moving = limited.into_iter().filter(|work| !stands_still(work, until)).collect();
    for group in within(unit).iter().rev() {
        disable(group).map_err(|e| fail(group, &e))?;
    }
    Ok(moving)
}

/// Returns the groups of the runs of all roots.
fn runs(unit: &Path) -> io::Result<Vec<PathBuf>> {
    let mut runs = Vec::new();
    for root in directories(unit)? {
        if root.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes())) {
            runs.extend(directories(&root)?);
        }
    }
    Ok(runs)
}

/// Returns a group and all groups beneath it, parents first. A worker may have made groups of its own.
fn within(unit: &Path) -> Vec<PathBuf> {
    let mut groups = vec![unit.to_owned()];
    let mut next = 0;
    while let Some(group) = groups.get(next) {
        // A group that vanished has none beneath it.
        let beneath = directories(group).unwrap_or_default();
        groups.extend(beneath);
        next += 1;
    }
    groups
}

fn directories(group: &Path) -> io::Result<Vec<PathBuf>> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            children.push(entry.path());
        }
    }
    Ok(children)
}

fn has_limit(work: &Path) -> bool {
    Controller::ALL.into_iter().any(|controller| {
        std::fs::read_to_string(work.join(format!("{}.max", controller.as_str())))
            .is_ok_and(|text| !text.starts_with("max"))
    })
}

fn stands_still(work: &Path, until: Instant) -> bool {
    while !cgroup::is_frozen(work) {
        if Instant::now() >= until || cgroup::wait_for_change(work).is_err() {
            return false;
        }
    }
    true
}

/// Stops a group from delegating any controller.
fn disable(group: &Path) -> io::Result<()> {
    let control = group.join("cgroup.subtree_control");
    let handed = match std::fs::read_to_string(&control) {
        Ok(handed) => handed,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let words: Vec<String> = handed.split_whitespace().map(|word| format!("-{word}")).collect();
    if words.is_empty() { Ok(()) } else { std::fs::write(&control, words.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a directory that looks like a group.
    fn group(dir: &Path, handed: &str, memory: &str) {
        std::fs::create_dir_all(dir).unwrap();
        for (file, text) in [
            ("cgroup.subtree_control", handed),
            ("cgroup.events", "populated 1\nfrozen 1\n"),
            ("cgroup.freeze", "0\n"),
            ("memory.max", memory),
        ] {
            std::fs::write(dir.join(file), text).unwrap();
        }
    }

    fn read(path: PathBuf) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_unit_hands_back_what_its_groups_hand_on_and_only_runs_with_limits_stand_still() {
        let unit = tempfile::tempdir().unwrap();
        let root = unit.path().join("supervisor-0123");
        let [limited, unlimited] = ["default-1", "default-2"].map(|run| root.join(run).join("work"));
        for (dir, handed, memory) in [
            (unit.path().to_owned(), "cpu memory pids\n", "max\n"),
            (root.clone(), "cpu memory pids\n", "max\n"),
            (root.join("default-1"), "memory\n", "max\n"),
            (limited.clone(), "", "67108864\n"),
            (limited.join("own"), "pids\n", "max\n"),
            (unlimited.clone(), "", "max\n"),
        ] {
            group(&dir, handed, memory);
        }
        let control = |dir: &Path| read(dir.join("cgroup.subtree_control"));

        assert!(hand_back(unit.path(), Instant::now()).unwrap().is_empty());

        assert_eq!(control(unit.path()), "-cpu -memory -pids");
        assert_eq!(control(&root), "-cpu -memory -pids");
        assert_eq!(control(&root.join("default-1")), "-memory");
        assert_eq!(control(&limited.join("own")), "-pids");
        assert_eq!(read(limited.join("cgroup.freeze")), "1");
        assert_eq!(read(unlimited.join("cgroup.freeze")), "0\n");
    }

    #[test]
    fn a_unit_whose_daemon_was_given_a_leaf_keeps_its_controllers() {
        let unit = tempfile::tempdir().unwrap();
        group(unit.path(), "cpu memory pids\n", "max\n");
        group(&unit.path().join("daemon"), "", "max\n");
        hand_back(unit.path(), Instant::now()).unwrap();
        assert_eq!(read(unit.path().join("cgroup.subtree_control")), "cpu memory pids\n");
    }

    #[test]
    fn a_run_that_does_not_stand_still_is_told() {
        let unit = tempfile::tempdir().unwrap();
        let work = unit.path().join("supervisor-0123/default-1").join("work");
        group(&work, "", "1\n");
        std::fs::write(work.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
        assert_eq!(hand_back(unit.path(), Instant::now()).unwrap(), [work]);
    }
}
