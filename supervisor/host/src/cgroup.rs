//! The cgroup of a run, with two leaves: one for the shim, and one for all processes of the worker.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kernel::{BoardName, RunId};
use nix::errno::Errno;
use policies::Controller;
use sha2::{Digest as _, Sha256};
use shim::shortage::unless_short;

use super::controllers::{self, Handed, Unit, make};
use super::proc_file::{self, read_bounded};

/// Prefix of the name of a root's directory of groups.
pub const PREFIX: &str = "supervisor-";
/// Longest wait for the last process of a group to be reaped before the group is removed.
const REMOVAL: Duration = Duration::from_secs(1);
/// Longest wait for one notification, in milliseconds. A change between two reads is not notified again.
const ANNOUNCEMENT: u8 = 100;

/// A directory of cgroup v2 in which this process may create groups.
#[derive(Clone, Debug)]
pub struct Cgroups {
    base: PathBuf,
    /// Controllers that each run's group has, so that its limits are enforced.
    controllers: BTreeSet<Controller>,
}

impl Cgroups {
    /// Finds the directory for the groups of a root: beneath the daemon's own group, if that is writable.
    pub fn find(root: &Path) -> Result<Self, String> {
        let base = of_root(root)?;
        make(&base).map_err(|e| format!("no group can be made at {}: {e}", base.display()))?;
        if !base.join("cgroup.kill").exists() {
            return Err("cgroup.kill needs Linux 5.14".to_owned());
        }
        Ok(Cgroups { base, controllers: BTreeSet::new() })
    }

    /// Does the same for a daemon that serves the root. The daemon moves into a leaf of its own group first, then
    /// delegates the group's controllers to runs.
    pub fn serve(root: &Path) -> Result<(Self, Handed), String> {
        // Created in the daemon's own group before anything is delegated, so that a failure leaves nothing behind.
        let cgroups = Cgroups::find(root)?;
        let mut handed = own_unit()?.hand_on();
        if let Err(e) = controllers::enable(&cgroups.base, &handed.controllers) {
            let gap = format!("{}: failed to hand the controllers on: {e}", cgroups.base.display());
            handed = Handed { gap: Some(gap), ..Handed::default() };
        }
        Ok((Cgroups { controllers: handed.controllers.clone(), ..cgroups }, handed))
    }

    /// Returns the path of a run's group, whether it exists or not.
    pub fn run(&self, board: &BoardName, run: RunId) -> PathBuf {
        self.base.join(format!("{board}-{run}"))
    }

    /// Creates the group of a run with its leaves `shim` and `work`.
    pub fn make_run(&self, board: &BoardName, run: RunId) -> io::Result<PathBuf> {
        let group = self.run(board, run);
        self.make_group(&group)?;
        Ok(group)
    }

    /// Creates a group with its leaves for a future run.
    pub(crate) fn make_spare(&self) -> io::Result<PathBuf> {
        // Board names have no dot, and the random part makes the name unique. A name must never recur: an old run is
        // ended by the group in its spec, and that must not be a later run's group.
        let group = self.base.join(format!("spare.{}", uuid::Uuid::new_v4().simple()));
        self.make_group(&group)?;
        Ok(group)
    }

    /// Creates a group with its leaves, and enables the controllers for them.
    fn make_group(&self, group: &Path) -> io::Result<()> {
        make(group)?;
        controllers::enable(group, &self.controllers)?;
        for leaf in ["shim", "work"] {
            make(&group.join(leaf))?;
        }
        Ok(())
    }

    /// Resumes a run that an earlier daemon started. The run was frozen since that daemon's end, because nothing
    /// enforced its limits (`handback.rs`).
    ///
    /// # Errors
    /// The limit that cannot be enforced. The run stays frozen.
    pub fn take_over(&self, group: &Path, policy: &policies::Policy) -> Result<(), String> {
        let enabled = if group.parent() == Some(&self.base) {
            controllers::enable(group, &self.controllers)
        } else {
            Ok(())
        };
        let work = group.join("work");
        // A missing controller matters only for a limit that needs it.
        policy.hold_limits(&work).map_err(|e| {
            let why = base::failure::with_causes(&e);
            match enabled {
                Ok(()) => why,
                Err(e) => format!("{why} ({}: {e})", group.join("cgroup.subtree_control").display()),
            }
        })?;
        freeze(&work, Freezer::Thawed).map_err(|e| format!("{}: {e}", work.display()))
    }

    /// Ends and removes every group except `keep`: leftovers of runs that are over.
    pub fn sweep(&self, keep: &BTreeSet<PathBuf>) {
        let entries = std::fs::read_dir(&self.base).into_iter().flatten().flatten();
        for group in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let group = group.path();
            if keep.contains(&group) {
                continue;
            }
            if let Err(error) = kill(&group) {
                tracing::warn!(path = %group.display(), %error, "cgroup_not_emptied");
            }
            if let Err(error) = remove_run(&group) {
                tracing::warn!(path = %group.display(), %error, "cgroup_not_removed");
            }
        }
    }

    /// Removes the directory of all groups if it is empty.
    pub fn remove(&self) {
        // Removal fails while runs continue without the daemon.
        drop(std::fs::remove_dir(&self.base));
    }
}

/// Returns the directory in which a daemon in this process's group keeps the groups of a root. Each root has its own.
pub fn of_root(root: &Path) -> Result<PathBuf, String> {
    let digest = Sha256::digest(root.to_string_lossy().as_bytes());
    let name = format!("{PREFIX}{}", hex::encode(&digest[..6]));
    Ok(own_unit()?.dir().join(name))
}

fn own_unit() -> Result<Unit, String> {
    unit_of(Path::new("/proc/self"))
}

fn unit_of(process: &Path) -> Result<Unit, String> {
    let environ = process.join("environ");
    let environment = read_bounded(&environ, proc_file::ENVIRONMENT);
    let environment = environment.map_err(|e| format!("{}: {e}", environ.display()))?.bytes;
    Ok(Unit::locate(&mount_point()?, &group_of(&process.join("cgroup"))?, &environment))
}

/// Returns the group of this process.
pub fn own() -> Result<PathBuf, String> {
    let group = group_of(Path::new("/proc/self/cgroup"))?;
    Ok(mount_point()?.join(group.trim_start_matches('/')))
}

/// Returns the controllers that runs of a daemon have, or, without a daemon, would have if it were started from here.
pub(crate) fn controllers_of(daemon: Option<i32>) -> Result<Handed, String> {
    match daemon {
        Some(pid) => Ok(unit_of(&PathBuf::from(format!("/proc/{pid}")))?.handed()),
        None => Ok(own_unit()?.delegable()),
    }
}

/// Returns the group of the run that a process belongs to, found by the leaf that contains the process.
pub fn run_of(pid: i32) -> Option<PathBuf> {
    let groups = read_bounded(Path::new(&format!("/proc/{pid}/cgroup")), proc_file::KERNEL).ok()?.bytes;
    let group_line = String::from_utf8(groups).ok()?;
    let group_path = group_line.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let leaf = group_path.split('/').position(|name| name == "work" || name == "shim")?;
    let run: PathBuf = group_path.split('/').take(leaf).collect();
    // Only groups made by daemons of this host lie beneath a directory with the prefix.
    let is_ours = run.parent()?.file_name()?.to_str()?.starts_with(PREFIX);
    let base = mount_point().ok()?;
    is_ours.then(|| base.join(run))
}

/// Removes the group of a run whose processes are gone. The next daemon sweeps what remains.
pub fn remove_run(group: &Path) -> io::Result<()> {
    let until = Instant::now() + REMOVAL;
    loop {
        unless_short(remove_tree(&group.join("work")))?;
        drop(std::fs::remove_dir(group.join("shim")));
        match std::fs::remove_dir(group) {
            Err(e) if e.raw_os_error() == Some(Errno::EBUSY as i32) && Instant::now() < until => {
                // A killed process stays in its group until the kernel has finished its exit.
                unless_short(wait_for_change(group))?;
            }
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            Ok(()) | Err(_) => return Ok(()),
        }
    }
}

/// Waits until a populated group may have become empty. Returns at once if it is empty.
pub(crate) fn wait_for_change(group: &Path) -> io::Result<()> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::io::Read as _;
    use std::os::fd::AsFd as _;
    let mut events = match std::fs::File::open(group.join("cgroup.events")) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let mut text = String::new();
    events.read_to_string(&mut text)?;
    // The kernel notifies a change by modifying the file; a change before this read is not notified.
    let timeout = if text.lines().any(|line| line == "populated 1") { ANNOUNCEMENT } else { 1 };
    let mut fds = [PollFd::new(events.as_fd(), PollFlags::POLLPRI)];
    poll(&mut fds, PollTimeout::from(timeout))?;
    Ok(())
}

fn remove_tree(group: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            unless_short(remove_tree(&entry.path()))?;
        }
    }
    std::fs::remove_dir(group)
}

/// State of a group's freezer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freezer {
    /// The processes are stopped. SIGKILL ends them all the same.
    Frozen,
    /// The processes run.
    Thawed,
}

/// Freezes or thaws the processes of a group. Freezing takes effect asynchronously.
pub(crate) fn freeze(group: &Path, state: Freezer) -> io::Result<()> {
    let word = match state {
        Freezer::Frozen => "1",
        Freezer::Thawed => "0",
    };
    match std::fs::write(group.join("cgroup.freeze"), word) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Returns true if all processes of a group are frozen.
pub(crate) fn is_frozen(group: &Path) -> bool {
    std::fs::read_to_string(group.join("cgroup.events"))
        .is_ok_and(|text| text.lines().any(|line| line == "frozen 1"))
}

/// Returns true if a process lives in a group or beneath it. A group that does not exist is empty.
pub fn populated(group: &Path) -> io::Result<bool> {
    match std::fs::read_to_string(group.join("cgroup.events")) {
        Ok(text) => Ok(text.lines().any(|line| line == "populated 1")),
        Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(Errno::ENODEV as i32) => {
            Ok(false)
        }
        Err(e) => Err(e),
    }
}

/// Kills every process in a group and beneath it.
pub fn kill(group: &Path) -> io::Result<()> {
    match std::fs::write(group.join("cgroup.kill"), "1") {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Returns the processes of a group and of the groups beneath it.
pub fn processes(group: &Path) -> Vec<i32> {
    let mut pids: Vec<i32> = std::fs::read_to_string(group.join("cgroup.procs"))
        .map(|text| text.lines().filter_map(|line| line.parse().ok()).collect())
        .unwrap_or_default();
    // A directory has a link for itself, one in its parent, and one in each directory below it.
    if std::fs::metadata(group).is_ok_and(|meta| meta.nlink() == 2) {
        return pids;
    }
    if let Ok(entries) = std::fs::read_dir(group) {
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            pids.extend(processes(&entry.path()));
        }
    }
    pids
}

fn mount_point() -> Result<PathBuf, String> {
    let mounts =
        std::fs::read_to_string("/proc/self/mountinfo").map_err(|e| format!("/proc/self/mountinfo: {e}"))?;
    mounts
        .lines()
        .find_map(|line| {
            // proc_pid_mountinfo(5): the mount point is the fifth field, the type the first after the separator.
            let (head, tail) = line.split_once(" - ")?;
            (tail.split(' ').next() == Some("cgroup2"))
                .then(|| head.split(' ').nth(4).map(PathBuf::from))
                .flatten()
        })
        .ok_or_else(|| "no cgroup2 file system is mounted".to_owned())
}

fn group_of(file: &Path) -> Result<String, String> {
    let groups = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    groups
        .lines()
        .find_map(|line| line.strip_prefix("0::").map(str::to_owned))
        .ok_or_else(|| format!("{}: no group of cgroup v2", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_group_never_gets_the_name_of_one_that_is_gone() {
        let base = tempfile::tempdir().unwrap();
        let cgroups = Cgroups { base: base.path().to_owned(), controllers: BTreeSet::new() };
        let first = cgroups.make_spare().unwrap();
        std::fs::remove_dir_all(&first).unwrap();
        assert_ne!(cgroups.make_spare().unwrap(), first);
    }

    /// Makes, as files, the groups of a root with the group of a frozen run.
    fn delegated_group(files: &[&str]) -> (tempfile::TempDir, Cgroups, PathBuf) {
        let base = tempfile::tempdir().unwrap();
        let group = base.path().join("default-1");
        let work = group.join("work");
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(group.join("cgroup.subtree_control"), "").unwrap();
        std::fs::write(work.join("cgroup.freeze"), "1").unwrap();
        for file in files {
            std::fs::write(work.join(file), "").unwrap();
        }
        let controllers = Controller::ALL.into_iter().collect();
        let cgroups = Cgroups { base: base.path().to_owned(), controllers };
        (base, cgroups, group)
    }

    fn read(path: PathBuf) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    fn limited(more: &str) -> policies::Policy {
        let text = format!("version = 1\n{more}[limits]\nmemory = '64MiB'\n");
        policies::Policy::from_toml(&text, Path::new("limited.toml")).unwrap()
    }

    #[test]
    fn a_run_that_is_taken_over_goes_on_when_its_limits_are_set_again() {
        let (_base, cgroups, group) = delegated_group(&["cgroup.procs", "memory.max"]);

        cgroups.take_over(&group, &limited("")).unwrap();

        assert_eq!(read(group.join("cgroup.subtree_control")), "+cpu +memory +pids");
        assert_eq!(read(group.join("work/memory.max")), "67108864");
        assert_eq!(read(group.join("work/cgroup.freeze")), "0");
    }

    #[test]
    fn a_run_whose_limit_cannot_be_set_again_stands_still_unless_its_policy_does_without() {
        let (_base, cgroups, group) = delegated_group(&["cgroup.procs"]);

        let why = cgroups.take_over(&group, &limited("compatibility = 'hard_requirement'\n")).unwrap_err();

        assert!(why.contains("memory.max"), "{why}");
        assert_eq!(read(group.join("work/cgroup.freeze")), "1");
        cgroups.take_over(&group, &limited("compatibility = 'best_effort'\n")).unwrap();
        assert_eq!(read(group.join("work/cgroup.freeze")), "0");
    }

    #[test]
    fn a_run_without_limits_goes_on_also_where_no_controller_can_be_handed_on() {
        let (_base, cgroups, group) = delegated_group(&["cgroup.procs"]);
        std::fs::remove_file(group.join("cgroup.subtree_control")).unwrap();
        std::fs::create_dir(group.join("cgroup.subtree_control")).unwrap();

        let why = cgroups.take_over(&group, &limited("")).unwrap_err();
        assert!(why.contains("cgroup.subtree_control"), "{why}");
        cgroups
            .take_over(&group, &policies::Policy::from_toml("version = 1\n", Path::new("free.toml")).unwrap())
            .unwrap();

        assert_eq!(read(group.join("work/cgroup.freeze")), "0");
    }
}
