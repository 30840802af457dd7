//! Finds every process of a root: by environment, command line, directory, cgroup and uid, since a worker may shed any of these.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sha2::{Digest, Sha256};

/// A process as it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// Its pid.
    pub(crate) pid: i32,
    /// Its uid.
    pub(crate) uid: u32,
    /// Its command line, words apart by spaces.
    pub(crate) command: String,
    environment: String,
}

impl Process {
    /// Returns true if a text is in its environment or command line.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.command.contains(text) || self.environment.contains(text)
    }

    /// Kills it; it may have ended by itself.
    pub(super) fn kill(&self) {
        let _: nix::Result<()> = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
    }
}

/// The processes of a root, without those that have ended and are only not reaped yet.
pub(super) fn processes(root: &Path, uids: (u32, u32)) -> Vec<Process> {
    let grouped = in_cgroups(root);
    let marks = root.to_string_lossy();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Some(process) = look(&entry.path(), pid) else { continue };
        let inside = ["cwd", "exe", "root"]
            .iter()
            .filter_map(|link| fs::read_link(entry.path().join(link)).ok())
            .any(|path| path.starts_with(root));
        let own_uid = (uids.0..uids.1).contains(&process.uid);
        if process.mentions(&marks) || inside || own_uid || grouped.contains(&pid) {
            found.push(process);
        }
    }
    found.retain(|process| process.pid != nix::unistd::getpid().as_raw());
    found
}

fn look(dir: &Path, pid: i32) -> Option<Process> {
    let status = fs::read_to_string(dir.join("status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if matches!(field("State:")?.as_bytes().first(), Some(b'Z' | b'X')) {
        return None;
    }
    let uid = field("Uid:")?.split_whitespace().next()?.parse().ok()?;
    let words = |name: &str| {
        let bytes = fs::read(dir.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
    };
    Some(Process { pid, uid, command: words("cmdline"), environment: words("environ") })
}

/// The pids in the root's cgroups, which are named by a digest of its path.
fn in_cgroups(root: &Path) -> BTreeSet<i32> {
    let mut pids = BTreeSet::new();
    if let Some(group) = cgroup(root) {
        collect(&group, &mut pids);
    }
    pids
}

/// The directory of the root's cgroups, if the host has cgroup v2 at all.
pub(crate) fn cgroup(root: &Path) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?.to_owned();
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let digest = Sha256::digest(root.to_string_lossy().as_bytes());
    let name = digest[..6].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    Some(Path::new(&mount).join(own).join(format!("supervisor-{name}")))
}

fn collect(group: &Path, pids: &mut BTreeSet<i32>) {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), pids);
        }
    }
}
